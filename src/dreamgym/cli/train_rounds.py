"""What `dreamgym train` shows where the dream is fitted again between rounds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import Bar, facts, progress, table
from dreamgym.config import RunConfig
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.rounds import Rounds
    from dreamgym.jobs.stages import Tick

_WHOLE = 100


def train_in_rounds(config: RunConfig, run: RunDir, console: Console) -> Rounds:
    """Run the stages and show where each stands."""
    from dreamgym.jobs.rounds import run_rounds  # torch: only when there is something to train

    with ExitStack() as shown:
        bars: dict[str, Bar] = {}

        def tick(tick: Tick) -> None:
            name = tick.stage.name
            if name not in bars:
                shown.close()  # the bar of the stage before
                label = f"{name}: {tick.stage.about}"
                bars[name] = shown.enter_context(progress(console, label, total=_WHOLE))
            # Only the last tick of a stage says nothing, and is its end.
            most = _WHOLE - 1 if tick.note else _WHOLE
            bars[name](min(most, round(_WHOLE * tick.share)), note=tick.note)

        return run_rounds(config, run, on_tick=tick)


def show_rounds(console: Console, done: Rounds) -> None:
    """Print how the rounds went; where a gate was shut, why, and end with 3."""
    result = done.result
    columns = ("round", "steps", "precision", "real before", "real after", "practised on")
    table(console, "Rounds", columns, [_row(one) for one in result["rounds"]])
    used = result["real_transitions"]
    facts(
        console,
        "",
        [
            ("policy", done.folder),
            *[(f"round {one['round']}", _ended(one)) for one in result["rounds"]],
            ("real transitions", f"{used['offline']} recorded, {used['online']} practised on, "
                                 f"{used['evaluation']} to look, to watch and to audit"),
            ("dreamt transitions", result["dream_transitions"]),
            ("time", f"{result['seconds']:.0f} s"),
        ],
    )  # fmt: skip
    if not done.reasons:
        return
    console.print("The gate of the new dream is shut, so there was no further round:", style="red")
    for reason in done.reasons:
        console.print(f"- {reason}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(options.GATE_SHUT)


def _ended(one: Mapping[str, Any]) -> str:
    then = one["then"]
    if not then:
        return str(one["why"])
    learnt = f"{then['what']}, on {then['learnt_from']} recorded transitions in all"
    return f"{one['why']}. Then {learnt}: {then['dream']}"


def _row(one: Mapping[str, Any]) -> tuple[object, ...]:
    seen = [reading["gap/precision"] for reading in one["watch"] if "gap/precision" in reading]
    looks = [
        f"{look['real/success']:.2f}" if look else "-" for look in (one["before"], one["after"])
    ]
    return (
        one["round"],
        one["steps"],
        f"{seen[0]:.2f} to {seen[-1]:.2f}" if seen else "-",
        *looks,
        one["real_transitions"]["online"],
    )
