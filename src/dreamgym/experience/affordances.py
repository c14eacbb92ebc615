"""What can be done here, as far as demonstrations tell: candidates for an agent that chooses.

Worlds that list their admissible actions are few, and a dream lists none. Demonstrations show the
kinds of action there are (`put _ in _`); all recorded actions show what fills their gaps, and where
the filling then stood in the state: what is taken is in a list, what is put is carried, what
is opened is closed. A state then gives its candidates by itself. They are plausible, not certain:
whether a door is locked the world decides.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.experience.contents import EMPTY, bare, things_of
from dreamgym.experience.ledger import carried_things
from dreamgym.experience.phrases import cut
from dreamgym.experience.roles import ABSENT, headings, role
from dreamgym.states import (
    COLON,
    STATUS,
    any_of,
    body_of,
    items,
    page_name,
    without_number,
)
from dreamgym.types import Trajectory, Transition

MOST = 64
"""Candidates of a state; more are cut off, kind by kind in the order of the alphabet."""
_GAP = "_"
_STRANGE = ""
"""The name of what nobody has named before."""
_ALWAYS = 3
"""What was so often, and without exception, is taken for a rule: one cleans with the sink only, and
takes only with free hands."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What may fill one gap of a kind of action."""

    names: tuple[str, ...]
    roles: tuple[str, ...]
    """Where a filling stands, such as `carrying: _`: see `roles.py`."""
    open: bool = True
    """Whether a thing that nobody has named before may fill it, where it stands right."""


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
    names: tuple[str, ...] = ()
    """All names that were ever heard, in actions or not."""

    def candidates(self, state: str) -> tuple[str, ...]:
        """Return the actions that a state suggests, sorted, each once."""
        sight = _sight(state, _scanner(self.names), frozenset(self.layout))
        hands_full = bool(carried_things(state))
        actions: list[str] = []
        for frame in self.frames:
            if frame.free_hands and hands_full:
                continue
            choices = [_fillings(gap, sight) for gap in frame.gaps]
            filled = (each for each in product(*choices) if len(set(each)) == len(each))
            actions += [_render(frame.kind, each) for each in filled]
        return tuple(sorted(dict.fromkeys(actions[:MOST])))


def affordances_from(plain: Mapping[str, Any]) -> Affordances:
    """Return the affordances that `dataclasses.asdict` made plain values of."""
    try:
        frames = tuple(map(_frame_from, plain["frames"]))
        return Affordances(frames, tuple(plain["layout"]), tuple(plain["names"]))
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"what this policy knows was written by another version ({error!r}): train it again"
        ) from error


def _frame_from(plain: Mapping[str, Any]) -> Frame:
    gaps = tuple(
        Gap(tuple(gap["names"]), tuple(gap["roles"]), gap["open"]) for gap in plain["gaps"]
    )
    return Frame(plain["kind"], gaps, plain["free_hands"])


def learn_affordances(
    demonstrations: Sequence[Trajectory],
    classes: Sequence[Sequence[str]] = (),
    *,
    recorded: Iterable[Trajectory] | None = None,
) -> Affordances:
    """Learn from actions that were carried out.

    Args:
        demonstrations: who shows which kinds of action there are.
        classes: names that may stand for one another; what fills a gap lets all its like fill it,
            unless it was always the same.
        recorded: episodes that show what fills the gaps of these kinds, and how it stands there;
            the demonstrations alone if not given.
    """
    shown = _carried_out(demonstrations)
    every = shown if recorded is None else _carried_out(recorded)
    uses = {kind: every.get(kind) or shown[kind] for kind in sorted(shown)}
    layout = headings([step.state for steps in uses.values() for step in steps])
    like = {name: frozenset(group) for group in classes for name in group}
    frames = []
    for kind, steps in uses.items():
        things = zip(*(cut(step.action).phrases for step in steps), strict=True)
        gaps = tuple(_gap(steps, phrases, layout, like) for phrases in things)
        full = [bool(carried_things(step.state)) for step in steps]
        frames.append(Frame(kind, gaps, free_hands=len(full) >= _ALWAYS and not any(full)))
    heard = {name for frame in frames for gap in frame.gaps for name in gap.names}.union(*classes)
    for step in (step for steps in every.values() for step in steps):
        heard |= set(map(without_number, cut(step.action).phrases))
    return Affordances(tuple(frames), tuple(sorted(layout)), tuple(sorted(heard)))


def _carried_out(episodes: Iterable[Trajectory]) -> dict[str, list[Transition]]:
    """Return the steps that were carried out, by the kind of their action."""
    found: dict[str, list[Transition]] = defaultdict(list)
    for step in (step for one in episodes for step in one.transitions() if not step.refused):
        parts = cut(step.action)
        # An article that the words left out would be missing in candidates, too.
        if _render(parts.kind, parts.phrases) == step.action.lower():
            found[parts.kind].append(step)
    return found


def _gap(
    uses: Sequence[Transition],
    phrases: Sequence[str],
    layout: frozenset[str],
    like: Mapping[str, frozenset[str]],
) -> Gap:
    """Return what is known of one gap of a kind, from the phrases that filled it."""
    known = {without_number(phrase) for phrase in phrases}
    is_open = len(known) > 1 or len(phrases) < _ALWAYS
    if is_open:
        known = known.union(*(like.get(name, frozenset()) for name in known))
    found = Counter(
        role(step.state, phrase, layout) for step, phrase in zip(uses, phrases, strict=True)
    )
    return Gap(tuple(sorted(known)), _usual(found), is_open)


def _usual(found: Counter[str]) -> tuple[str, ...]:
    """Return the roles that were seen; once out of sight does not make a thing of no place."""
    if 2 * found[ABSENT] > found.total():
        return (ABSENT,)
    return tuple(sorted(found.keys() - {ABSENT}))


Sight = Sequence[tuple[str, str, str]]
"""What a state names: each as it is known, as it stands there, and its role."""


def _sight(state: str, scan: re.Pattern[str], layout: frozenset[str]) -> Sight:
    found = {(one[1].lower(), one[0]): None for one in scan.finditer(body_of(state))}
    here = page_name(state)
    strange = (
        thing
        for item in items(state)
        for thing in _things(item)
        if thing != here and not scan.search(thing)
    )
    found |= {(_STRANGE, thing): None for thing in strange}
    return [(name, shown, role(state, shown, layout)) for name, shown in found]


def _things(item: str) -> Iterator[str]:
    """Yield what an item lists, or the item itself where it lists nothing, by bare names."""
    listed = things_of(item) if COLON in item else (item,)
    named = map(bare, listed)
    yield from (thing for thing in named if thing and thing not in (*EMPTY, *STATUS))


@lru_cache(8)
def _scanner(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)({any_of(names) or '(?!)'})(?:\s\d+)?(?!\w)", re.IGNORECASE)


def _fillings(gap: Gap, sight: Sight) -> list[str]:
    if ABSENT in gap.roles:
        return list(gap.names)
    names = {*gap.names, _STRANGE} if gap.open else set(gap.names)
    return [shown for name, shown, stands in sight if stands in gap.roles and name in names]


def _render(kind: str, phrases: Sequence[str]) -> str:
    rest = iter(phrases)
    return " ".join(next(rest, _GAP) if word == _GAP else word for word in kind.split())
