"""What an action is made of: its verb, its frame of small words, and the things it is about.

English word lists only; no environment's grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

SMALL = frozenset(
    {"in", "into", "inside", "on", "onto", "from", "to", "with", "at", "using", "under"}
)
ARTICLES = frozenset({"the", "a", "an", "some"})


@dataclass(frozen=True, slots=True)
class Parts:
    """An action cut up."""

    kind: str
    """Its verb and small words, with `_` for each phrase: `put _ in _`."""
    phrases: tuple[str, ...]
    """The things it is about, in order."""


def cut(action: str) -> Parts:
    """Cut an action into its kind and its phrases."""
    words = action.lower().split()
    frame, phrases, phrase = words[:1], list[str](), list[str]()
    for word in [*words[1:], ""]:
        if word and word not in SMALL:
            if word not in ARTICLES:
                phrase.append(word)
            continue
        if phrase:
            phrases.append(" ".join(phrase))
            frame.append("_")
            phrase = []
        if word:
            frame.append(word)
    return Parts(" ".join(frame), tuple(phrases))


def mentions(text: str, phrase: str) -> bool:
    """Say whether a text contains a phrase as whole words, in any case."""
    return whole(phrase).search(text) is not None


@lru_cache(4096)
def whole(phrase: str) -> re.Pattern[str]:
    """Return the pattern of a phrase as whole words, in any case."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", re.IGNORECASE)


def places(items: Sequence[str], phrase: str) -> tuple[int, ...]:
    """Return the numbers of the items that mention a phrase."""
    return tuple(number for number, item in enumerate(items) if mentions(item, phrase))


_PLACES, _QUOTED = 2, 8


def located(items: Sequence[str], action: str) -> tuple[str, ...]:
    """Say where each thing that an action is about is found among the items of a state.

    Finding a word is what small models do badly and a rule does well. Things are quoted by their
    whole names and short items whole, so that what is there need not be looked up either.
    """
    found = []
    for phrase in cut(action).phrases:
        quoted = [
            f"#{number} {_quoted(items[number], phrase)}".rstrip()
            for number in places(items, phrase)[:_PLACES]
        ]
        found.append(f"{phrase} at {' and '.join(quoted)}" if quoted else f"{phrase} nowhere")
    return tuple(found)


def _quoted(item: str, phrase: str) -> str:
    """Return the part of an item that is about a phrase: a listed thing, or a short item."""
    head, colon, content = item.partition(": ")
    if colon and not mentions(head, phrase):
        return next((thing for thing in content.split(", ") if mentions(thing, phrase)), content)
    return item if len(item.split()) <= _QUOTED else ""
