"""A state as its parts: lines of items, a carrying line, and what was said at the end.

States are texts (see "How a state is laid out" in docs/concepts.md); nothing here knows an
environment. In `experience/`, `edit.py` says how one state becomes another, and `ledger.py`
remembers pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

SEPARATOR = "; "
"""Between the items of a line."""
COLON = ": "
"""Between what an item is called and what it lists."""
SAID = "> "
"""Starts a line that is about one moment only: what the environment said to the last action."""
_CARRYING = re.compile(r"carrying\b", re.IGNORECASE)

_NAME_ENDS = re.compile(r":| \(")
STATUS = ("closed", "locked", "off", "on", "open")
"""What states write to say how a thing is, in place of a list or after its name."""
_AROUND_A_PLACE = re.compile(rf"^(?:at|in|on)\s+|\s+(?:{'|'.join(STATUS)})$", re.IGNORECASE)

_BETWEEN_NAMES = re.compile(r"[\n:;,()]")
_NUMBER = re.compile(r"\s+\d+$")
_KEPT = 8192
"""Texts whose parts are remembered: a state is looked at many times while it is current."""
Lines = tuple[tuple[str, ...], ...]
"""The items of a state, line by line."""


@lru_cache(maxsize=_KEPT)
def split_said(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the state without what was said, and what was said, one text per line."""
    lines = text.split("\n")
    body = [line for line in lines if not _is_said(line)]
    return "\n".join(body), tuple(line[len(SAID) :] for line in lines if _is_said(line))


def _is_said(line: str) -> bool:
    return line.startswith(SAID)


def with_said(body: str, said: Iterable[str]) -> str:
    """Return the state that consists of a body and of what was said."""
    lines = [f"{SAID}{words}" for words in said]
    return "\n".join([body, *lines] if body or not lines else lines)


def body_of(text: str) -> str:
    """Return a state without what was said."""
    return split_said(text)[0]


def lines_of(body: str) -> Lines:
    """Return the items of a body, line by line; a body without text has no line."""
    if not body:
        return ()
    return tuple(tuple(line.split(SEPARATOR)) for line in body.split("\n"))


def body_from(lines: Iterable[Iterable[str]]) -> str:
    """Return the body that these items make: the inverse of `lines_of`."""
    return "\n".join(SEPARATOR.join(line) for line in lines)


@lru_cache(maxsize=_KEPT)
def items(text: str) -> tuple[str, ...]:
    """Return all items of a state in order; an item's place is its number."""
    return tuple(item for line in lines_of(body_of(text)) for item in line)


def numbered(text: str) -> str:
    """Return a state with its items numbered, such as `#0 kitchen` and `#1 counter: knife`."""
    number = 0
    lines = []
    for line in lines_of(body_of(text)):
        lines.append(
            SEPARATOR.join(f"#{place} {item}" for place, item in enumerate(line, start=number))
        )
        number += len(line)
    return "\n".join(lines)


def is_carrying(line: str) -> bool:
    """Say whether a line tells what the agent holds: it goes where the agent goes."""
    return _CARRYING.match(line) is not None


@lru_cache(maxsize=_KEPT)
def page_name(text: str) -> str:
    """Return the name of a state's page: where one is, without what is there.

    It is the first item up to a colon or a bracket, as in `at drawer 1 (open): pencil 1`.
    """
    first = items(text)[:1]
    return _NAME_ENDS.split(first[0], maxsplit=1)[0].strip() if first else ""


def place_name(text: str) -> str:
    """Return what other states call the place that a state is about: `drawer 1`."""
    return _AROUND_A_PLACE.sub("", page_name(text))


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of names, the longest first: `pepper` is not a name in `black pepper`."""
    return "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))


def names_in(text: str) -> list[str]:
    """Return what stands between the signs of a state: the names of things, and of places."""
    return [one.strip() for one in _BETWEEN_NAMES.split(text) if one.strip()]


def without_number(phrase: str) -> str:
    """Return a phrase without the number that tells it from its like."""
    return _NUMBER.sub("", phrase)
