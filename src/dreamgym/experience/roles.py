"""Where a thing stands in a state: in whose list, after which words, open or closed.

What can be done with a thing depends more on where it stands than on its name: what is taken lies
in a list, what is put is carried, what is opened is closed. A *role* says so without its name, as
`carrying: _`, or `at _: | places: _` for the place where one is; a colon at its end says that it
has a list of its own. Generic over environments; the layout of states is that of `dreamgym.states`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from dreamgym.experience.ledger import carried_things
from dreamgym.experience.phrases import cut, whole
from dreamgym.states import COLON, STATUS, is_carrying, items

ABSENT = ""
"""The role of what a state does not show, such as `around` in `look around`."""
_GAP = "_"
_FIXED_SHARE = 0.5
_NUMBER = re.compile(r"\d")
_COUNT = re.compile(r"\s+\d+/\d+$")


def headings(states: Sequence[str]) -> frozenset[str]:
    """Return the headings that at least half of the states have, such as `places`.

    They belong to the layout, and what they list has a role of its own. In a world of one room its
    furniture is among them.
    """
    counts = Counter(
        heading
        for state in states
        for heading in {_heading(item) for item in items(state) if COLON in item}
        if not _NUMBER.search(heading)  # what is numbered is a thing
    )
    return frozenset(one for one, count in counts.items() if count >= _FIXED_SHARE * len(states))


def role(state: str, phrase: str, layout: frozenset[str]) -> str:
    """Return all the ways in which a state shows a thing, as one text."""
    wanted = whole(phrase)
    found = set[str]()
    for item in items(state):
        head, colon, content = item.partition(COLON)
        if wanted.search(head):
            ending = colon + content if content in STATUS else colon.rstrip()
            found.add(_COUNT.sub("", wanted.sub(_GAP, head)) + ending)
        if wanted.search(content):
            heading = _heading(item)
            own = heading in layout or is_carrying(heading)
            found.add(f"{heading if own else _GAP}{COLON}{_GAP}")
    return " | ".join(sorted(found))


def situation(state: str, action: str, layout: frozenset[str]) -> str:
    """Return an action's kind with the role of each of its things, and whether hands are full."""
    parts = cut(action)
    roles = [role(state, phrase, layout) for phrase in parts.phrases]
    hands = "full" if carried_things(state) else "free"
    alike = ["same"] if len(set(parts.phrases)) < len(parts.phrases) else []
    return "; ".join([parts.kind, *roles, hands, *alike])


def never_worked(
    tried: Iterable[tuple[str, str, bool]], layout: frozenset[str], *, times: int
) -> frozenset[str]:
    """Return the situations in which an action was tried that often and always refused.

    Args:
        tried: state, action, and whether it was refused.
        layout: see `headings`.
        times: fewer failures may have been bad luck, or have had a reason of their own.
    """
    refused, worked = Counter[str](), set[str]()
    for state, action, was_refused in tried:
        here = situation(state, action, layout)
        if was_refused:
            refused[here] += 1
        else:
            worked.add(here)
    return frozenset(one for one, count in refused.items() if count >= times) - worked


def _heading(item: str) -> str:
    return _COUNT.sub("", item.partition(COLON)[0])
