"""What a player sees: answers with what changed, both worlds side by side, references."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dreamgym.jobs.play import Turn, changed_lines, happened, lines_beside, verdict

_STYLES = {"+": "green", "-": "red", " ": ""}
DIFFERENT = "≠"


def say(console: Console, text: str, *, style: str = "") -> None:
    """Print a text as it is."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def turn(console: Console, one: Turn) -> None:
    """Print what an action led to."""
    if one.dream is not None and one.real is not None:
        _side_by_side(console, one)
    elif one.dream is not None:
        for mark, line in changed_lines(one.before, one.dream.observation.text):
            say(console, f"{mark} {line}", style=_STYLES[mark])
        say(console, f"{verdict(one.dream)}; decided by: {one.origin}", style="bold")
    elif one.real is not None:
        say(console, f"{one.real.observation.text}\nreal alone: {verdict(one.real)}")
    if one.reasoning:
        say(console, f"why: {one.reasoning}")
    for reference in one.references:
        past = reference.transition
        say(console, f"  {reference.similarity:.2f}  {past.action}: {happened(past)}", style="dim")
    if one.trouble:
        say(console, one.trouble, style="red")
    say(console, "")


def _side_by_side(console: Console, one: Turn) -> None:
    if one.dream is None or one.real is None:
        return
    grid = Table(header_style="bold")
    grid.add_column("")
    grid.add_column(f"dream, decided by: {one.origin}", overflow="fold")
    grid.add_column("real", overflow="fold")
    old, true_old = one.before.split("\n"), one.real_before.split("\n")
    for same, dreamed, real in lines_beside(one.dream.observation.text, one.real.observation.text):
        _row(grid, same, _with_mark(dreamed, old), _with_mark(real, true_old))
    grid.add_section()
    told, true = verdict(one.dream), verdict(one.real)
    _row(grid, told == true, told, true)
    console.print(grid)


def _with_mark(line: str, before: list[str]) -> str:
    return f"{' ' if line in before else '+'} {line}" if line else ""


def _row(grid: Table, same: bool, dreamed: str, real: str) -> None:
    style = "" if same else "red"
    mark = "" if same else DIFFERENT
    grid.add_row(mark, Text(dreamed, style=style), Text(real, style=style))


def references_in_full(console: Console, last: Turn | None) -> None:
    """Print the references of the last answer with their states."""
    if last is None or not last.references:
        say(console, "The last answer was given without references.")
        return
    for number, reference in enumerate(last.references, start=1):
        past = reference.transition
        say(console, f"[{number}] {reference.similarity:.3f} alike, {past.id}", style="bold")
        say(console, f"goal: {past.goal}\n> {past.action}: {happened(past)}")
        for mark, line in changed_lines(past.state, past.next_state):
            say(console, f"{mark} {line}", style=_STYLES[mark])
        say(console, "")
