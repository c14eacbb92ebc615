"""What the demo shows at its end: the curve, one task twice, a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from dreamgym.cli.curve import draw_curve
from dreamgym.cli.display import facts, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dreamgym.jobs.demo_result import CurvePoint, DemoOutcome, Example

LONGEST = 100
"""Letters of a page in an example."""


def show_curve(console: Console, points: Sequence[CurvePoint]) -> None:
    """Print the learning curve."""
    drawn = Text("\n".join(draw_curve(points)))
    console.print(Panel(drawn, title="Success by step", title_align="left", expand=False))


def show_example(console: Console, example: Example) -> None:
    """Print one task as it was played before and after."""
    from dreamgym.jobs.demo_result import short_script

    console.print("One task before and after; one that was learnt was picked, if there is any.")
    for when, one in (("before", example.before), ("after the dream", example.after)):
        won = "achieved" if one.success else "not achieved"
        lines = [f"> {action}\n  {page[:LONGEST]}" if action else page[:LONGEST]
                 for action, page in short_script(one)]  # fmt: skip
        title = f"{one.task.goal}: {when}, {won} in {len(one.steps)} turns"
        console.print(Panel(Text("\n".join(lines)), title=Text(title), title_align="left"))


def show_outcome(console: Console, outcome: DemoOutcome, *, result: Path, page: Path) -> None:
    """Print what came of it."""
    from dreamgym.jobs.demo_result import CALLED

    found = outcome.result
    used, seconds = found["real_transitions"], found["seconds"]
    online = {"sim_to_real": used["online_sim_to_real"]}
    rows = [
        (words, f"{rate['mean']:.2f}", f"{rate['low']:.2f} to {rate['high']:.2f}",
         rate["episodes"], online.get(name, 0))
        for name, words in CALLED.items()
        if (rate := found["real_success"][name]) is not None
    ]  # fmt: skip
    columns = ("policy", "real success", "95 % interval", "episodes", "online real transitions")
    table(console, f"{found['env']}, {found['split']} tasks", columns, rows)
    facts(
        console,
        "",
        [
            ("real transitions", f"{used['offline']} recorded before (offline), "
                                 f"{used['online_dream']} in the dream, "
                                 f"{used['online_sim_to_real']} in sim-to-real; "
                                 f"{used['audit']} for the audit, {used['evaluation']} to look"),
            ("dreamt transitions", found["dream_transitions"]),
            ("seconds", f"{seconds['total']:.0f}; of the processor "
                        f"{found['processor_seconds']['total']:.0f}"),
            ("seed", found["seed"]),
            ("result", result),
            ("report", page),
        ],
    )  # fmt: skip
