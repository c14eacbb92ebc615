"""What `dreamgym train --algo dpo` shows while a policy learns from won and lost episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from dreamgym.cli.display import facts, progress, table
from dreamgym.config import RunConfig
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.prefer import Preferred


def prefer_with_bar(config: RunConfig, run: RunDir, console: Console) -> Preferred:
    """Learn from preferences and show how far it is."""
    from dreamgym.jobs.prefer import run_dpo  # torch: only when there is something to train

    with progress(console, "Preferring", total=config.dpo.steps) as bar:
        held_out = ""

        def row(step: int, figures: dict[str, float]) -> None:
            nonlocal held_out
            if "dpo/held_out_accuracy" in figures:
                held_out = f"; held out {figures['dpo/held_out_accuracy']:.2f}"
            note = f"told apart {figures['dpo/accuracy']:.2f}" if step else ""
            bar(step, note=(note + held_out).removeprefix("; "))

        return run_dpo(config, run, on_row=row)


def show_preferred(console: Console, done: Preferred, config: RunConfig) -> None:
    """Print how the held-out pairs went, and what came of it."""
    rows = [
        (
            step,
            f"{found['dpo/held_out_accuracy']:.3f}",
            f"{found['dpo/held_out_margin']:.3f}",
            f"{found['dpo/held_out_likelier']:.3f}",
        )
        for step, found in done.curve
    ]
    if rows:
        columns = ("step", "told apart", "margin", "won one likelier")
        table(console, f"Held-out pairs of {done.env}", columns, rows[-12:])
    facts(
        console,
        "",
        [
            ("policy", done.folder),
            ("pairs", f"{done.pairs} learnt from, {done.held_out} held out; {done.tasks} tasks"),
            ("updates", f"{config.dpo.steps} of {config.dpo.pairs_per_step} pairs"),
            ("real transitions", f"{done.transitions} recorded"),
            ("time", f"{done.seconds:.0f} s"),
        ],
    )
