"""The things that an action is about, called `<1>`, `<2>` and so on instead of by their names.

What is taken, put or opened mostly stands in the action itself. A small model that has to write its
name again copies it badly, above all where it has never met it; one that may point at it does not.
Putting names in and out is exact in both directions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dreamgym.experience.phrases import cut, whole

PLACEHOLDERS = ("<1>", "<2>", "<3>")
"""Special words of the compact style; an action about more things has the others by name."""
_PLACEHOLDER = re.compile(r"<(\d)>")


@lru_cache(maxsize=4096)
def things_of(action: str) -> tuple[str, ...]:
    """Return what an action is about, as it is written there."""
    found = []
    for phrase in cut(action).phrases[: len(PLACEHOLDERS)]:
        written = whole(phrase).search(action)
        # A bare number is no name: it would be mistaken for the number of an item.
        if written and any(letter.isalpha() for letter in phrase):
            found.append(written[0])
    return tuple(dict.fromkeys(found))


def pointed(text: str, action: str) -> str:
    """Return a text in which the things of an action are pointed at."""
    things = things_of(action)
    if not things:
        return text
    # The longest first: `oil` is not pointed at inside `peanut oil`.
    longest = sorted(things, key=len, reverse=True)
    pattern = "|".join(rf"(?<!\w){re.escape(thing)}(?!\w)" for thing in longest)
    return re.sub(pattern, lambda found: PLACEHOLDERS[things.index(found[0])], text)


def named(text: str, action: str) -> str:
    """Return a text in which what was pointed at is named: the inverse of `pointed`."""
    things = things_of(action)

    def name(found: re.Match[str]) -> str:
        place = int(found[1]) - 1
        if not 0 <= place < len(things):
            raise ValueError(f"{found[0]} is nothing: the action is about {len(things)} things")
        return things[place]

    return _PLACEHOLDER.sub(name, text)
