"""What `dreamgym train` shows while a policy learns from demonstrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from dreamgym.cli.display import facts, progress, table, time_left
from dreamgym.config import RunConfig
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.train import Cloned
    from dreamgym.models.sft_plan import SftProgress


def clone_with_bars(config: RunConfig, run: RunDir, console: Console) -> Cloned:
    """Run behaviour cloning and show how far it is."""
    from dreamgym.jobs.train import run_sft  # torch: only when there is something to train

    held_out = ""
    with progress(console, "Training", total=config.train.steps, guess_time=False) as bar:

        def learnt(state: SftProgress) -> None:
            nonlocal held_out
            if state.held_out is not None:
                exact = state.held_out.spans["action"].exact
                held_out = f"; held out {state.held_out.loss:.3f}, exact {exact:.2f}"
            note = f"{time_left(state.seconds_left)}; loss {state.loss:.3f}{held_out}"
            bar(state.step, note=note)

        return run_sft(config, run, on_progress=learnt)


def show_cloned(console: Console, cloned: Cloned, config: RunConfig) -> None:
    """Print how the held-out curve went, and what came of it."""
    result = cloned.result
    rows = [
        (point.step, f"{point.loss:.4f}", f"{point.spans['action'].exact:.3f}")
        for point in result.curve
    ]
    if rows:
        columns = ("step", "loss", "episodes exact")
        table(console, f"Held-out demonstrations of {cloned.env}", columns, rows[-12:])
    classes = ", ".join(str(len(group)) for group in cloned.names.classes)
    facts(
        console,
        "",
        [
            ("policy", cloned.folder),
            ("model", f"{cloned.parameters:,} parameters, {cloned.vocabulary} tokens"),
            ("format", cloned.card.format),
            ("demonstrations", f"{len(cloned.demonstrations)} by {config.train.behaviour}, "
                               f"{cloned.held_out} of them held out; {cloned.actions} actions"),
            ("names", f"classes of {classes}, {config.train.renaming:.0%} of episodes renamed"
                      if classes else "not renamed"),
            ("updates", f"{result.steps}, best at {result.best_step}"),
            ("tokens", f"{result.tokens:,}"),
            ("time", f"{cloned.seconds:.0f} s, {result.seconds:.0f} s of them training"),
        ],
    )  # fmt: skip
