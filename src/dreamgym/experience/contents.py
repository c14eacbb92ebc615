"""Items that list things, such as `shelf: cup, spoon` or `carrying 2/4: cup, knife`.

A thing that comes or goes changes such an item in one place only. Saying just that spares a model
to copy the whole list, which small ones do badly. Lists that are in order stay in order, and a
count before the list is kept right; where a list does otherwise, an edit writes the item anew.
"""

from __future__ import annotations

import re
from collections import Counter

from dreamgym.experience.phrases import mentions
from dreamgym.states import COLON

_COMMA = ", "
EMPTY = ("empty", "nothing")
"""What states write where a list has nothing in it."""
_MOST_MOVES = 2
"""Where more things come and go, the new list is the shorter answer."""
_COUNT = re.compile(r"\b(\d+)(/\d+)$")


def empty_word(body: str) -> str:
    """Return what a state writes where a list has nothing in it."""
    return "nothing" if ": nothing" in body else "empty"


def _split(item: str) -> tuple[str, list[str]]:
    """Return what stands before the list, and the list. Raises `ValueError` where there is none."""
    head, colon, content = item.partition(COLON)
    if not colon:
        raise ValueError(f"'{item[:60]}' lists nothing: write the item anew with '='")
    return head, [] if content in EMPTY else content.split(_COMMA)


def things_of(item: str) -> tuple[str, ...]:
    """Return the things that an item lists, each once."""
    return tuple(dict.fromkeys(_split(item)[1])) if COLON in item else ()


def lists(item: str, thing: str) -> bool:
    """Say whether a thing is in the list of an item."""
    return thing in things_of(item)


def _joined(head: str, old: list[str], new: list[str], *, empty: str) -> str:
    found = _COUNT.search(head)
    if found is not None and int(found[1]) == len(old):
        head = f"{head[: found.start()]}{len(new)}{found[2]}"
    return head + COLON + (_COMMA.join(new) or empty)


def with_thing(item: str, thing: str) -> str:
    """Return the item with one thing more in its list."""
    head, old = _split(item)
    new = sorted([*old, thing]) if old == sorted(old) else [*old, thing]
    return _joined(head, old, new, empty=thing)


def without_thing(item: str, thing: str, *, empty: str) -> str:
    """Return the item with one thing less. Raises `ValueError` for a thing that is not there.

    A thing may be named without its state, or with another: `cup 1` for `cup 1 (clean)`; or by a
    part of its name, where only one has it: `potato` for `fried potato`.
    """
    head, old = _split(item)
    meant = [one for one in old if one == thing] or [one for one in old if bare(one) == bare(thing)]
    if not meant:
        meant = [one for one in old if mentions(one, thing)]
        meant = meant if len(meant) == 1 else []
    if not meant:
        raise ValueError(f"'{thing[:60]}' is not in the list of '{item[:60]}'")
    new = list(old)
    new.remove(meant[0])
    return _joined(head, old, new, empty=empty)


def bare(thing: str) -> str:
    """Return what a thing is called, without how it is: `cup 1` of `cup 1 (clean)`."""
    return thing.partition(" (")[0].strip()


def moves(old: str, new: str, *, empty: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the things that left and that came, where that says how one item became another."""
    try:
        (_, before), (_, after) = _split(old), _split(new)
        left = tuple((Counter(before) - Counter(after)).elements())
        came = tuple((Counter(after) - Counter(before)).elements())
        told = old
        for thing in left:
            told = without_thing(told, thing, empty=empty)
        for thing in came:
            told = with_thing(told, thing)
    except ValueError:
        return None
    return (left, came) if told == new and 0 < len(left) + len(came) <= _MOST_MOVES else None
