"""What the commands show: bars on a terminal, plain lines elsewhere, tables at the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PLAIN_SECONDS = 10.0
"""How often a line is printed where no bar can be drawn."""


_STYLES = {"ok": "green", "FAILED": "bold red"}
"""Words that stand out in a table. All else is printed as it is: states are full of brackets."""


class Bar(Protocol):
    """Shows how far something is."""

    def __call__(self, done: int, *, note: str = "") -> None:
        """Show that so much is done."""


@contextmanager
def progress(console: Console, label: str, *, total: int) -> Iterator[Bar]:
    """Show progress with the time left while the block runs."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(label, total=total, note="")

            def draw(done: int, *, note: str = "") -> None:
                bar.update(task, completed=done, note=note)

            yield draw
    else:
        yield _plain_lines(console, label, total)


def _plain_lines(console: Console, label: str, total: int) -> Bar:
    started = shown = time.monotonic()
    first: int | None = None

    def line(done: int, *, note: str = "") -> None:
        nonlocal shown, first
        first = done if first is None else first
        now = time.monotonic()
        if now - shown < PLAIN_SECONDS and done < total:
            return
        shown = now
        gained = done - first
        left = (total - done) * (now - started) / gained if gained else 0.0
        ending = f", about {left:.0f} s left" if done < total and gained else ""
        console.print(f"{label}: {done} of {total}{ending} {note}".rstrip(), highlight=False)

    return line


def table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Print a table, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    grid = Table(title=Text(title), title_justify="left", title_style="bold", header_style="dim")
    for index, column in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[index]) for row in cells)
        grid.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(grid)


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").isdigit()


def facts(console: Console, title: str, rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values side by side."""
    grid = Table(title=Text(title), title_justify="left", title_style="bold", show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, Text(str(value)))
    console.print(grid)
