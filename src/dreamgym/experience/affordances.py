"""What can be done here, as far as demonstrations tell: candidates for an agent that chooses.

Worlds that list their admissible actions are few, and a dream lists none. From actions that were
carried out one can learn the kinds of action there are (`put _ in _`), what fills their gaps, and
where the filling then stood in the state: what is taken is in a list, what is put is carried, what
is opened is closed. A state then gives its candidates by itself. They are plausible, not certain:
whether a door is locked the world decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.experience.ledger import carried_things
from dreamgym.experience.phrases import cut
from dreamgym.experience.roles import ABSENT, headings, role
from dreamgym.states import body_of
from dreamgym.types import Trajectory, Transition

MOST = 64
"""Candidates of a state; more are cut off, kind by kind in the order of the alphabet."""
_GAP = "_"
_ALWAYS = 3
"""What was so often, and without exception, is taken for a rule: one cleans with the sink only, and
takes only with free hands."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What may fill one gap of a kind of action."""

    names: tuple[str, ...]
    roles: tuple[str, ...]
    """Where a filling stands, such as `carrying: _`, or `at _ | places: _` for where one is."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A kind of action."""

    kind: str
    """With `_` for each gap: `put _ in _`."""
    gaps: tuple[Gap, ...]
    free_hands: bool = False
    """Whether it was only ever done with nothing carried, as one takes things in some worlds."""


@dataclass(frozen=True, slots=True)
class Affordances:
    """Every kind of action that was demonstrated."""

    frames: tuple[Frame, ...]
    layout: tuple[str, ...] = ()
    """Headings that belong to the layout of states: what they list has a role of its own."""

    def candidates(self, state: str) -> tuple[str, ...]:
        """Return the actions that a state suggests, sorted, each once."""
        names = {name for frame in self.frames for gap in frame.gaps for name in gap.names}
        sight = _sight(state, _scanner(names), frozenset(self.layout))
        hands_full = bool(carried_things(state))
        actions: list[str] = []
        for frame in self.frames:
            if frame.free_hands and hands_full:
                continue
            choices = [_fillings(gap, sight) for gap in frame.gaps]
            filled = (each for each in product(*choices) if len(set(each)) == len(each))
            actions += [_render(frame.kind, each) for each in filled]
        return tuple(sorted(dict.fromkeys(actions[:MOST])))


def affordances_from(frames: Iterable[Mapping[str, Any]], layout: Sequence[str]) -> Affordances:
    """Return the affordances that `dataclasses.asdict` made plain values of."""
    try:
        return Affordances(tuple(map(_frame_from, frames)), tuple(layout))
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"the kinds of action that this policy knows were written by another version ({error} "
            "is missing): train it again"
        ) from error


def _frame_from(plain: Mapping[str, Any]) -> Frame:
    gaps = tuple(Gap(tuple(gap["names"]), tuple(gap["roles"])) for gap in plain["gaps"])
    return Frame(plain["kind"], gaps, plain["free_hands"])


def learn_affordances(
    demonstrations: Iterable[Trajectory], classes: Sequence[Sequence[str]] = ()
) -> Affordances:
    """Learn from actions that were carried out.

    Args:
        demonstrations: recorded episodes.
        classes: names that may stand for one another; what fills a gap lets all its like fill it,
            unless it was always the same.
    """
    steps = [step for one in demonstrations for step in one.transitions() if not step.refused]
    fillings: dict[str, list[list[str]]] = {}
    for step in steps:
        parts = cut(step.action)
        # An article that the words left out would be missing in candidates, too.
        if _render(parts.kind, parts.phrases) == step.action.lower():
            gaps = fillings.setdefault(parts.kind, [[] for _ in parts.phrases])
            for gap, phrase in zip(gaps, parts.phrases, strict=True):
                gap.append(_bare(phrase))
    like = {name: frozenset(group) for group in classes for name in group}
    names = {
        kind: [_with_their_like(filled, like) for filled in gaps] for kind, gaps in fillings.items()
    }
    layout = headings([step.state for step in steps])
    roles = _roles_of(steps, names, layout)
    return Affordances(
        tuple(
            Frame(
                kind,
                tuple(
                    Gap(tuple(sorted(gap)), _usual(found))
                    for gap, found in zip(names[kind], roles[kind], strict=True)
                ),
                _free_hands(kind, steps),
            )
            for kind in sorted(names)
        ),
        tuple(sorted(layout)),
    )


def _with_their_like(filled: Sequence[str], like: Mapping[str, frozenset[str]]) -> set[str]:
    known = set(filled)
    if len(known) == 1 and len(filled) >= _ALWAYS:
        return known
    return known.union(*(like.get(name, frozenset()) for name in known))


def _free_hands(kind: str, steps: Iterable[Transition]) -> bool:
    full = [bool(carried_things(step.state)) for step in steps if cut(step.action).kind == kind]
    return len(full) >= _ALWAYS and not any(full)


def _roles_of(
    steps: Iterable[Transition],
    names: Mapping[str, list[set[str]]],
    layout: frozenset[str],
) -> dict[str, list[Counter[str]]]:
    roles = {kind: [Counter[str]() for _ in gaps] for kind, gaps in names.items()}
    for step in steps:
        parts = cut(step.action)
        if parts.kind not in roles:
            continue
        for found, phrase in zip(roles[parts.kind], parts.phrases, strict=True):
            found[role(step.state, phrase, layout)] += 1
    return roles


def _usual(found: Counter[str]) -> tuple[str, ...]:
    """Return the roles that were seen; once out of sight does not make a thing of no place."""
    if 2 * found[ABSENT] > found.total():
        return (ABSENT,)
    return tuple(sorted(found.keys() - {ABSENT}))


Sight = Sequence[tuple[str, str, str]]
"""What a state names: each as it is known, as it stands there, and its role."""


def _sight(state: str, scan: re.Pattern[str], layout: frozenset[str]) -> Sight:
    found = {(one[1].lower(), one[0]): None for one in scan.finditer(body_of(state))}
    return [(name, shown, role(state, shown, layout)) for name, shown in found]


def _bare(phrase: str) -> str:
    """Return a phrase without the number that tells it from its like."""
    return re.sub(r"\s+\d+$", "", phrase)


def _scanner(names: Iterable[str]) -> re.Pattern[str]:
    # The longest first: `pepper` is not in sight where `black pepper` is.
    listed = "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))
    return re.compile(rf"(?<![\w-])({listed or '(?!)'})(?:\s\d+)?(?![\w-])", re.IGNORECASE)


def _fillings(gap: Gap, sight: Sight) -> list[str]:
    if ABSENT in gap.roles:
        return list(gap.names)
    return [shown for name, shown, stands in sight if stands in gap.roles and name in gap.names]


def _render(kind: str, phrases: Sequence[str]) -> str:
    rest = iter(phrases)
    return " ".join(next(rest, _GAP) if word == _GAP else word for word in kind.split())
