"""`dreamgym report`: what runs came to, as one page to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Runs = Annotated[
    list[Path], typer.Argument(help="Run directories; those that differ by seed are put together.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="The file; by default report.html in the first run.")
]
Title = Annotated[str, typer.Option("--title", help="Words above the page.")]


def report(runs: Runs, out: Out = None, title: Title = "") -> None:
    """Write one page about runs: curves, costs, audits, episodes, settings. It needs no network."""
    from dreamgym.jobs.report import run_report

    place = run_report(runs, out=out, title=title)
    console = Console()
    console.print(f"The report is in {place}.", markup=False, highlight=False, soft_wrap=True)
