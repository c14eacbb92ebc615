"""What can be done here, as far as demonstrations tell: candidates for an agent that chooses.

Worlds that list their admissible actions are few, and a dream lists none. From actions that were
carried out one can learn the kinds of action there are (`put _ in _`), what fills their gaps, and
where the filling was then seen: on the page or among what is carried. A state then gives its
candidates by itself. They are plausible, not certain: whether a door is locked the world decides.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from dreamgym.experience.phrases import cut, mentions
from dreamgym.experience.state import body_of, is_carrying
from dreamgym.types import Trajectory, Transition

PAGE, CARRIED, ANYWHERE = "page", "carried", "anywhere"
"""Where the filling of a gap is seen; what was seen nowhere, as in `look around`, needs no look."""
MOST = 64
"""Candidates of a state; more are cut off, kind by kind in the order of the alphabet."""
_GAP = "_"


@dataclass(frozen=True, slots=True)
class Gap:
    """What may fill one gap of a kind of action."""

    names: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A kind of action."""

    kind: str
    """With `_` for each gap: `put _ in _`."""
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Affordances:
    """Every kind of action that was demonstrated."""

    frames: tuple[Frame, ...]

    def candidates(self, state: str) -> tuple[str, ...]:
        """Return the actions that a state suggests, sorted, each once."""
        seen = {PAGE: "", CARRIED: "", **_sight(state)}
        names = {name for frame in self.frames for gap in frame.gaps for name in gap.names}
        scan = _scanner(names)
        found = {place: _phrases(scan, text) for place, text in seen.items()}
        actions: list[str] = []
        for frame in self.frames:
            choices = [_fillings(gap, found) for gap in frame.gaps]
            filled = (each for each in product(*choices) if len(set(each)) == len(each))
            actions += [_render(frame.kind, each) for each in filled]
        return tuple(sorted(dict.fromkeys(actions[:MOST])))


def affordances_from(frames: Iterable[Mapping[str, Any]]) -> Affordances:
    """Return the affordances that `dataclasses.asdict` made plain values of."""
    return Affordances(
        tuple(
            Frame(
                frame["kind"],
                tuple(Gap(tuple(gap["names"]), tuple(gap["places"])) for gap in frame["gaps"]),
            )
            for frame in frames
        )
    )


def learn_affordances(
    demonstrations: Iterable[Trajectory], classes: Sequence[Sequence[str]] = ()
) -> Affordances:
    """Learn from actions that were carried out.

    Args:
        demonstrations: recorded episodes.
        classes: names that may stand for one another; what fills a gap lets all its like fill it.
    """
    names: dict[str, list[set[str]]] = {}
    places: dict[str, list[Counter[str]]] = defaultdict(list)
    for one in demonstrations:
        for step in one.transitions():
            _note(step, names, places)
    like = {name: frozenset(group) for group in classes for name in group}
    frames = []
    for kind in sorted(names):
        gaps = []
        for filled, where in zip(names[kind], places[kind], strict=True):
            all_names = filled.union(*(like.get(name, frozenset()) for name in filled))
            gaps.append(Gap(tuple(sorted(all_names)), tuple(sorted(where)) or (PAGE, CARRIED)))
        frames.append(Frame(kind, tuple(gaps)))
    return Affordances(tuple(frames))


def _note(
    step: Transition, names: dict[str, list[set[str]]], places: dict[str, list[Counter[str]]]
) -> None:
    parts = cut(step.action)
    if step.refused or _render(parts.kind, parts.phrases) != step.action.lower():
        return  # an article that the words left out would be missing in candidates, too
    if parts.kind not in names:
        names[parts.kind] = [set() for _ in parts.phrases]
        places[parts.kind] = [Counter() for _ in parts.phrases]
    sight = _sight(step.state)
    for gap, phrase in enumerate(parts.phrases):
        names[parts.kind][gap].add(_bare(phrase))
        seen = [place for place, text in sight.items() if mentions(text, phrase)]
        if len(seen) < 2:  # seen twice, it does not tell which of the two is meant
            places[parts.kind][gap][seen[0] if seen else ANYWHERE] += 1


def _sight(state: str) -> dict[str, str]:
    lines = body_of(state).split("\n")
    return {
        PAGE: "\n".join(line for line in lines if not is_carrying(line)),
        CARRIED: "\n".join(line for line in lines if is_carrying(line)),
    }


def _bare(phrase: str) -> str:
    """Return a phrase without the number that tells it from its like."""
    return re.sub(r"\s+\d+$", "", phrase)


def _scanner(names: Iterable[str]) -> re.Pattern[str]:
    # The longest first: `pepper` is not in sight where `black pepper` is.
    listed = "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))
    return re.compile(rf"(?<![\w-])({listed or '(?!)'})(?:\s\d+)?(?![\w-])", re.IGNORECASE)


def _phrases(scan: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """Return the names in a text: each as it is known, and as it stands there."""
    return list(dict.fromkeys((found[1].lower(), found[0]) for found in scan.finditer(text)))


def _fillings(gap: Gap, found: dict[str, list[tuple[str, str]]]) -> list[str]:
    names = set(gap.names)
    if ANYWHERE in gap.places:
        return list(gap.names)
    return [shown for place in gap.places for name, shown in found[place] if name in names]


def _render(kind: str, phrases: Sequence[str]) -> str:
    rest = iter(phrases)
    return " ".join(next(rest, _GAP) if word == _GAP else word for word in kind.split())
