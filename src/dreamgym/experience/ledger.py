"""A per-episode memory of pages: what the dream has shown stays true.

A page is a state without what was said and without what the agent carries. Its name is its first
item. A reply that names a page which the ledger (this episode) or a reference (a recorded step of
the same task) holds is answered with that page verbatim, and what the agent carries comes along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from dreamgym.experience.contents import EMPTY
from dreamgym.experience.edit import Edit, Op, Verb, apply, diff
from dreamgym.protocols import Reference
from dreamgym.states import (
    SEPARATOR,
    body_of,
    is_carrying,
    items,
    page_name,
    place_name,
    split_said,
    with_said,
)
from dreamgym.types import Origin

REST = ": ..."
"""Stands for what memory knows to be said under a heading."""
_AT_LENGTH = 4
"""Words of content from which on a heading is enough."""


@dataclass(frozen=True, slots=True)
class Page:
    """The lines of a page; None stands where the agent's carrying line goes."""

    lines: tuple[str | None, ...]

    def seen_by(self, carrying: tuple[str, ...]) -> str:
        """Return the body of the state in which an agent that carries this sees the page."""
        body: list[str] = []
        rest = list(carrying)
        for line in self.lines:
            if line is not None:
                body.append(line)
            elif rest:
                body += rest
                rest = []
        return "\n".join([*body, *rest])

    def tells_more_than(self, name: str) -> bool:
        """Say whether there is more to the page than its name."""
        return any(line not in (None, name) for line in self.lines)


@lru_cache(maxsize=65_536)
def page_of(state: str) -> Page:
    """Return the page that a state shows."""
    lines = body_of(state).split("\n")
    return Page(tuple(None if is_carrying(line) else line for line in lines))


def carrying_lines(state: str) -> tuple[str, ...]:
    """Return the lines of a state that tell what the agent carries."""
    return tuple(line for line in body_of(state).split("\n") if is_carrying(line))


def carried_things(state: str) -> frozenset[str]:
    """Return the things in an agent's hands, as the state names them."""
    lists = (line.partition(":")[2].split(",") for line in carrying_lines(state))
    things = {thing.strip() for things in lists for thing in things}
    # Who carries `nothing` has not taken it from a shelf that holds `nothing`.
    return frozenset(things - {"", *EMPTY})


def heading_of(words: str) -> str:
    """Return the heading of something said at length, such as `map` of `map: a - b; b - c`."""
    heading, _, content = words.partition(": ")
    return heading if len(content.split()) >= _AT_LENGTH else ""


class Ledger:
    """What one episode has shown: pages as they were last seen, and what was said at length."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._names: dict[str, str] = {}
        """Under which name each place was last seen: `drawer 1` as `at drawer 1 open`."""
        self._said: dict[str, str] = {}

    def show(self, state: str) -> None:
        """Take note of a state that the agent now sees. An edited page replaces the older one."""
        name = page_name(state)
        if name:
            self._pages[name] = page_of(state)
            self._names[place_name(state)] = name
        self._said |= {heading_of(words): words for words in split_said(state)[1]}

    def said(self, heading: str) -> str | None:
        """Return what was said under a heading."""
        return self._said.get(heading) if heading else None

    def page(self, name: str) -> Page | None:
        """Return a page by its name."""
        return self._pages.get(name)

    def place(self, name: str) -> Page | None:
        """Return the page of a place as it was left, whether it is open or closed by its name."""
        return self._pages.get(self._names.get(name, name))


def recalled_pages(references: Iterable[Reference], *, task_id: str, state: str) -> dict[str, Page]:
    """Return the pages of recorded steps of the same task, by name, the nearest one first.

    Rooms of one name look different in every task, so other tasks say nothing about pages. A page
    from which the agent holds something is given without it, or not at all where that would leave
    a place of unknown looks.
    """
    held = carried_things(state)
    found: dict[str, Page] = {}
    for reference in references:
        one = reference.transition
        if one.task_id != task_id:
            continue
        for text in (one.next_state, one.state):
            name, page = page_name(text), without(page_of(text), held)
            if name and page is not None:
                found.setdefault(name, page)
    return found


def without(page: Page, things: frozenset[str]) -> Page | None:
    """Return a page without things that are elsewhere now, or None where nobody knows its looks."""
    lines: list[str | None] = []
    for line in page.lines:
        if line is None:
            lines.append(None)
            continue
        kept = []
        for item in line.split(SEPARATOR):
            if item.strip() in things:
                continue
            holder, colon, content = item.partition(": ")
            inside = content.split(", ")
            left = [thing for thing in inside if thing.strip() not in things]
            if colon and not left:
                return None
            kept.append(f"{holder}: {', '.join(left)}" if colon else item)
        if kept:
            lines.append(SEPARATOR.join(kept))
    return Page(tuple(lines))


@dataclass(frozen=True, slots=True)
class Pages:
    """Where a named page may come from."""

    shown: Ledger
    recalled: Mapping[str, Page] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    """What is on record as said at length, by heading."""

    def find(self, name: str) -> tuple[Page, Origin] | None:
        """Return a page by name, from the episode before the references."""
        return _from(self.shown.page(name), self.recalled.get(name))

    def arrive(self, name: str) -> tuple[Page, Origin] | None:
        """Return the page of a place that one comes to from elsewhere.

        It is as it was left, or as others first found it. That it is open or closed is a matter
        of memory, too, and not of how a model names it.
        """
        place = place_name(name)
        found = _from(self.shown.place(place), self.recalled.get(place))
        return found or self.find(name)

    def in_full(self, words: str) -> str:
        """Return what was said, where only its heading is given and memory holds the rest."""
        heading = words.removesuffix(REST)
        if heading == words:
            return words
        return self.shown.said(heading) or self.told.get(heading, words)


def _from(shown: Page | None, recalled: Page | None) -> tuple[Page, Origin] | None:
    if shown is not None:
        return shown, Origin.LEDGER
    return None if recalled is None else (recalled, Origin.REFERENCE)


def resolve(edit: Edit, state: str, *, pages: Pages | None) -> tuple[str, Origin]:
    """Return the next state that an edit stands for, and who decided it.

    Raises `ValueError` where the edit does not fit the state.
    """
    if pages is not None:
        edit = replace(edit, said=tuple(map(pages.in_full, edit.said)))
    after = apply(state, edit)
    name = page_name(after)
    if name == page_name(state):
        if edit.page == name:
            # One stays where one is: a name alone means that nothing there changed.
            return with_said(body_of(state), edit.said), Origin.MODEL
        return after, Origin.MODEL
    if pages is None:
        return after, Origin.MODEL
    moved = place_name(after) != place_name(state)
    found = pages.arrive(name) if moved else pages.find(name)
    if found is None:
        return after, Origin.MODEL
    page, origin = found
    carrying = carrying_lines(after)
    if edit.page is not None:
        # Whoever writes a page may leave out what goes along anyway.
        carrying = carrying or carrying_lines(state)
    return with_said(page.seen_by(carrying), edit.said), origin


def shorten(edit: Edit, state: str, *, pages: Pages) -> Edit:
    """Return the edit with all that memory supplies verbatim cut to its name.

    That is a page which is on record, and what was said at length.
    """
    after = apply(state, edit)
    edit = replace(edit, said=tuple(_short(words, pages) for words in edit.said))
    name = page_name(after)
    if name == page_name(state):
        return edit
    if edit.page is not None:
        named = replace(edit, page=name)
    else:
        # Memory supplies the page, so of the changes only those of the carrying line are needed.
        own = [op for op in edit.ops if _is_about_carrying(op, state)]
        named = replace(edit, ops=(Op(Verb.REPLACE, 0, name), *own))
    return named if resolve(named, state, pages=pages)[0] == after else edit


def _short(words: str, pages: Pages) -> str:
    short = f"{heading_of(words)}{REST}"
    return short if pages.in_full(short) == words else words


def only_named(state: str, next_state: str) -> str:
    """Return the name of another page of which a step tells nothing else, or nothing."""
    name = page_name(next_state)
    if name == page_name(state):
        return ""
    edit = diff(state, next_state)
    if edit.page is not None:
        return name if not page_of(edit.page).tells_more_than(name) else ""
    told = [op for op in edit.ops if not _is_about_carrying(op, state)]
    return name if told == [Op(Verb.REPLACE, 0, name)] else ""


def _is_about_carrying(op: Op, state: str) -> bool:
    known = items(state)
    return is_carrying(op.text) or (op.item < len(known) and is_carrying(known[op.item]))
