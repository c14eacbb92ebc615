"""What `dreamgym train` shows while a policy learns by trial."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rich.console import Console

from dreamgym.cli.display import facts, progress, table
from dreamgym.config import RunConfig
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.reinforce import Reinforced
    from dreamgym.train.loop import Progress


def reinforce_with_bar(config: RunConfig, run: RunDir, console: Console) -> Reinforced:
    """Run the loop and show how far it is."""
    from dreamgym.jobs.reinforce import run_rl  # torch: only when there is something to train

    with progress(console, "Learning", total=config.rl.steps) as bar:
        seen = ""

        def row(state: Progress, figures: dict[str, float]) -> None:
            nonlocal seen
            if "real/success" in figures:
                seen = f"; real {figures['real/success']:.2f} at step {state.step}"
            note = f"success {figures['reward/success']:.2f}" if state.step else ""
            paid = f"; {state.real_steps} of {config.rl.then_real} real transitions"
            note += paid if state.stage else ""
            # How many steps the real transitions pay for shows only as they are made.
            total = state.step + 1 if state.stage else None
            bar(state.step, note=(note + seen).removeprefix("; "), total=total)

        return asyncio.run(run_rl(config, run, on_row=row))


def show_reinforced(console: Console, done: Reinforced, config: RunConfig) -> None:
    """Print how real success went, and what came of it."""
    state = done.progress
    names = [name for name in ("real/success", "real/success_greedy", "real/refused")
             if state.probes and name in state.probes[0]]  # fmt: skip
    if names:
        rows = [
            (int(point["step"]), *(f"{point[name]:.3f}" for name in names))
            for point in state.probes
        ]
        title = f"Real success on {config.rl.eval_episodes} dev tasks of {done.env}"
        table(console, title, ("step", *names), rows[-12:])
    best = f"step {state.best_step}, real success {state.best_success:.2f}, in best/"
    facts(
        console,
        "",
        [
            ("policy", done.folder),
            ("practised", f"{state.step} steps in {done.world}, by {config.train.algo}"),
            ("best", best if state.probes else "nobody looked"),
            *[("then for real" if turn.to == "real" else "stopped",
               f"at step {turn.step}, with the weights of step {turn.weights}. {turn.why}")
              for turn in state.turns],
            *([("watch", _watched(state))] if state.readings else []),
            ("real transitions", f"{done.offline} recorded, {state.real_steps} practised on, "
                                 f"{state.probe_steps + state.watch_steps} to look and to watch"),
            ("dreamt transitions", state.dream_steps),
            ("time", f"{done.seconds:.0f} s"),
        ],
    )  # fmt: skip


def _watched(state: Progress) -> str:
    """Return how precision went, in a line."""
    seen = [one["gap/precision"] for one in state.readings if "gap/precision" in one]
    alarms = sum(one["gap/alarm"] for one in state.readings)
    went = f"{seen[0]:.2f} to {seen[-1]:.2f}" if seen else "not measured: nobody won in the dream"
    return f"precision {went}; {alarms:.0f} of {len(state.readings)} readings too low"
