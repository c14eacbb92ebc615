"""Names that could as well be others: episodes retold with their places and things renamed.

A policy that has seen forty demonstrations has seen few names, and takes them for reasons. Retold
under other names, the same demonstrations teach it to read what stands in front of it. Which words
are names, and which of them may stand for one another, is read off recorded experience by rules
that know no environment: names of pages are places; what actions are about are things, and things
that the same kinds of actions go with are of one class. Small classes are left alone:
two positions of a switch are grammar, not names.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dreamgym.experience.phrases import cut, mentions
from dreamgym.states import any_of, body_of, page_name, without_number
from dreamgym.types import Action, Observation, Step, Trajectory

FEWEST = 4
"""Names of a class that is worth renaming."""
ALIKE = 0.6
"""Share of kinds of action that names of one class have in common."""
_TRIES = 8
_PAGE = "a page"


@dataclass(frozen=True, slots=True)
class Names:
    """Classes of names; within a class any name may stand for any other."""

    classes: tuple[tuple[str, ...], ...]

    def draw(self, rng: random.Random) -> dict[str, str]:
        """Return a renaming: every name of a class gets one of the same class, each used once."""
        renamed: dict[str, str] = {}
        for names in self.classes:
            renamed.update(zip(names, rng.sample(names, len(names)), strict=True))
        return renamed


def find_names(trajectories: Iterable[Trajectory], *, fewest: int = FEWEST) -> Names:
    """Find the names in recorded experience.

    Places are the names of pages; things are what admissible actions are about, and what the
    recorded actions are about where none are listed. Only what states show counts.
    """
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    shown: set[str] = set()
    actions: set[str] = set()
    for trajectory in trajectories:
        for now in (trajectory.opening, *(step.result.observation for step in trajectory.steps)):
            page = without_number(page_name(now.text))
            if page:
                uses[page][_PAGE] += 1
            shown.update(re.findall(r"[\w'-]+", body_of(now.text).lower()))
            actions.update(now.admissible or ())
        if trajectory.opening.admissible is None:
            actions.update(step.action.text for step in trajectory.steps)
    for action in sorted(actions):
        parts = cut(action)
        for slot, phrase in enumerate(parts.phrases):
            uses[without_number(phrase)][f"{parts.kind} {slot}"] += 1
    known = {name: kinds for name, kinds in uses.items() if set(name.split()) <= shown}
    kept = {name: kinds for name, kinds in known.items() if _is_name(name, kinds, known)}
    return Names(tuple(group for group in _classes(kept) if len(group) >= fewest))


def _is_name(name: str, kinds: Counter[str], known: Mapping[str, Counter[str]]) -> bool:
    """Say whether a phrase could as well be another."""
    if not name:
        return False
    if set(kinds) == {_PAGE}:
        # A page called after a thing, such as `at drawer 1`, is renamed with the thing.
        return not any(other != name and mentions(name, other) for other in known)
    # What alone goes with some kind of action, such as the meal in `prepare meal`, is grammar.
    own = [kind for kind in kinds if kind != _PAGE]
    return all(
        any(kind in theirs for other, theirs in known.items() if other != name) for kind in own
    )


def _classes(uses: Mapping[str, Counter[str]]) -> list[tuple[str, ...]]:
    """Group names by the kinds of action that they go with, around the most used ones."""
    leaders: list[tuple[frozenset[str], list[str]]] = []
    for name in sorted(uses, key=lambda each: (-len(uses[each]), -uses[each].total(), each)):
        kinds = frozenset(uses[name])
        kinds = frozenset({_PAGE}) if _PAGE in kinds else kinds
        for theirs, members in leaders:
            if len(kinds & theirs) >= ALIKE * len(kinds | theirs):
                members.append(name)
                break
        else:
            leaders.append((kinds, [name]))
    return [tuple(sorted(members)) for _, members in leaders]


class Renamer:
    """Puts other names into texts, all at once."""

    def __init__(self, renamed: Mapping[str, str]) -> None:
        self._renamed = {old: new for old, new in renamed.items() if old != new}
        pattern = any_of(renamed)
        self._pattern = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])") if renamed else None

    def text(self, text: str) -> str:
        """Return a text under the new names."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._renamed.get(found[0], found[0]), text)

    def inverse(self) -> Renamer:
        """Return the renaming that takes this one back."""
        return Renamer({new: old for old, new in self._renamed.items()})

    def trajectory(self, one: Trajectory) -> Trajectory:
        """Return a trajectory under the new names; who sampled its actions is forgotten."""
        task = replace(one.task, goal=self.text(one.task.goal))
        steps = tuple(self._step(step) for step in one.steps)
        return replace(one, task=task, opening=self._observation(one.opening), steps=steps)

    def _observation(self, now: Observation) -> Observation:
        listed = None if now.admissible is None else tuple(map(self.text, now.admissible))
        return Observation(self.text(now.text), listed)

    def _step(self, step: Step) -> Step:
        result = replace(step.result, observation=self._observation(step.result.observation))
        return replace(step, action=Action(self.text(step.action.text)), result=result)


def retold(trajectory: Trajectory, names: Names, rng: random.Random) -> Trajectory:
    """Return a trajectory under other names, drawn so that the old ones could be found again.

    Where names run into each other (`olive` before `oil`), another draw is made; after a few the
    trajectory is returned as it was.
    """
    for _ in range(_TRIES):
        renamed = names.draw(rng)
        renamer, back = Renamer(renamed), Renamer({new: old for old, new in renamed.items()})
        found = renamer.trajectory(trajectory)
        if _texts(back.trajectory(found)) == _texts(trajectory):
            return found
    return trajectory


def _texts(one: Trajectory) -> Sequence[str]:
    seen = (one.opening, *(step.result.observation for step in one.steps))
    return [
        one.task.goal,
        *(step.action.text for step in one.steps),
        *(text for now in seen for text in (now.text, *(now.admissible or ()))),
    ]
