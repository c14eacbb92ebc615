"""Where a thing stands in a state: in whose list, after which words, open or closed.

What can be done with a thing depends more on where it stands than on its name: what is taken lies
in a list, what is put is carried, what is opened is closed. A *role* says so without its name, as
`carrying: _`, or `at _: | places: _` for the place where one is; a colon at its end says that it
has a list of its own. Where two things stand right and their like still never went together, their
names decide: a *pairing*, as `move _ to _; pillow; sink`. Generic over environments; the layout of
states is that of `dreamgym.states`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dreamgym.experience.ledger import carried_things
from dreamgym.experience.phrases import cut, whole
from dreamgym.states import COLON, STATUS, is_carrying, items, without_number

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


@dataclass(frozen=True, slots=True)
class Trial:
    """A recorded action, by how and which things it was about."""

    situation: str
    pairing: str
    refused: bool

    @classmethod
    def of(cls, state: str, action: str, *, refused: bool, layout: frozenset[str]) -> Trial:
        """Describe an action that was tried in a state."""
        return cls(situation(state, action, layout), pairing(action), refused)


def pairing(action: str) -> str:
    """Return an action's kind with its things, numbers apart; nothing for fewer than two."""
    parts = cut(action)
    if len(parts.phrases) < 2:
        return ""
    return "; ".join([parts.kind, *map(without_number, parts.phrases)])


def never_worked(trials: Iterable[Trial], *, times: int) -> frozenset[str]:
    """Return the situations in which an action was tried that often and always refused."""
    return _always_refused(((one.situation, one.refused) for one in trials), times)


def never_together(trials: Sequence[Trial], *, times: int) -> frozenset[str]:
    """Return the pairings that were tried that often where they might have worked, and never did.

    They might have where the things stood as others did with which it worked.
    """
    in_place = {one.situation for one in trials if not one.refused}
    paired = (one for one in trials if one.pairing and one.situation in in_place)
    return _always_refused(((one.pairing, one.refused) for one in paired), times)


def _always_refused(tried: Iterable[tuple[str, bool]], times: int) -> frozenset[str]:
    """Return what was refused that often and without exception: less may have been bad luck."""
    refused, worked = Counter[str](), set[str]()
    for what, was_refused in tried:
        if was_refused:
            refused[what] += 1
        else:
            worked.add(what)
    return frozenset(one for one, count in refused.items() if count >= times) - worked


def _heading(item: str) -> str:
    return _COUNT.sub("", item.partition(COLON)[0])
