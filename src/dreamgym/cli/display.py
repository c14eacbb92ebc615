"""What the commands show: bars on a terminal, plain lines elsewhere, tables at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

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

    def __call__(self, done: int, *, note: str = "", total: int | None = None) -> None:
        """Show that so much is done; a total counts from then on."""


@contextmanager
def progress(console: Console, label: str, *, total: int, guess_time: bool = True) -> Iterator[Bar]:
    """Show progress while the block runs, with the time left unless a note tells it better."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            *([TimeRemainingColumn()] if guess_time else []),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(label, total=total, note="")

            def draw(done: int, *, note: str = "", total: int | None = None) -> None:
                bar.update(task, completed=done, note=note, total=total)

            yield draw
    else:
        yield _plain_lines(console, label, total, guess_time=guess_time)


def _plain_lines(console: Console, label: str, total: int, *, guess_time: bool) -> Bar:
    started = shown = time.monotonic()
    first: int | None = None

    known = total

    def line(done: int, *, note: str = "", total: int | None = None) -> None:
        nonlocal shown, first, known
        total = known = known if total is None else total
        first = done if first is None else first
        now = time.monotonic()
        if now - shown < PLAIN_SECONDS and done < total:
            return
        shown = now
        gained = done - first
        left = (total - done) * (now - started) / gained if gained else 0.0
        ending = f", {time_left(left)}" if guess_time and done < total and gained else ""
        console.print(f"{label}: {done} of {total}{ending} {note}".rstrip(), highlight=False)

    return line


def time_left(seconds: float) -> str:
    """Say how long something will take, as exactly as one may."""
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"


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


def llm_notice(console: Console) -> Callable[..., None]:
    """Return a listener that tells people when a run waits for its language model."""

    def tell(name: str, **details: Any) -> None:
        from dreamgym.llm.stack import outage_words  # brings the HTTP client along

        words = outage_words(name, **details)
        if words:
            console.print(words, style="yellow", markup=False, highlight=False, soft_wrap=True)

    return tell


def spent_words(figures: Mapping[str, float]) -> str:
    """Say what a language model was asked and what that cost."""
    tokens = figures["llm/prompt_tokens"] + figures["llm/completion_tokens"]
    words = [f"{figures['llm/calls']:.0f} calls, {tokens:.0f} tokens"]
    words += [f"cost {figures['llm/cost']:.4g}"] if figures["llm/cost"] else []
    hits = figures.get("llm/cache_hits", 0.0)
    words += [f"{hits:.0f} from the cache"] if hits else []
    return ", ".join(words)
