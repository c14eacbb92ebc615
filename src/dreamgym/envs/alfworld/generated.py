"""The splits of generated problems: who is in which, told apart by what a player sees first.

Each first state (goal and receptacles) belongs to one split, chosen by its digest, and seeds are
tried in order until enough problems have fallen into the split. So no two splits share a seed or a
first state, whatever their sizes, and no split has the same first state twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dreamgym.envs.alfworld.game_text import NO_GOAL, TASK_TYPES, GameText, make_game_text
from dreamgym.envs.alfworld.generate import (
    Goals,
    Size,
    Sketch,
    draw_sketch,
    possible_goals,
    write_problem,
)
from dreamgym.envs.alfworld.rooms import HELD_OUT
from dreamgym.envs.alfworld.upstream import Upstream
from dreamgym.errors import ConfigError
from dreamgym.types import Split, Task, derive_seed

_FIRST_SEED = {Split.TRAIN: 0, Split.DEV: 10_000_000, Split.TEST: 20_000_000}
_SHARE = 10
"""First states are dealt to ten parts: one for dev, two for test, seven for training."""
_TRIES = 400
"""Seeds tried per problem before we say that there are no more first states to be had."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Which problems are wanted."""

    types: tuple[str, ...] = TASK_TYPES
    size: Size = Size(6, 6)
    hold_out_objects: bool = False
    counts: tuple[tuple[Split, int], ...] = ()


class GeneratedGames:
    """Problems by seed."""

    def __init__(self, env: str, upstream: Upstream, recipe: Recipe) -> None:
        self._env = env
        self._upstream = upstream
        self._recipe = recipe
        size = recipe.size
        held = "-heldout" if recipe.hold_out_objects else ""
        self._name = f"alfworld/generated#{size.receptacles}x{size.objects}{held}"
        self._goals: dict[tuple[str, bool | None], Goals] = {}
        self._listed: dict[Split, tuple[Task, ...]] = {}

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """List the problems of a split, its task types in turn."""
        if split not in self._listed:
            self._listed[split] = self._list(split)
        return self._listed[split]

    def _list(self, split: Split) -> tuple[Task, ...]:
        counts = dict(self._recipe.counts)
        streams = [self._stream(split, kind) for kind in self._recipe.types]
        found: list[Task] = []
        for index in range(counts[split]):
            kind = index % len(streams)
            sketch = next(streams[kind], None)
            if sketch is None:
                raise ConfigError(
                    f"{self._env}: no more than {len(found)} {split} problems with different first "
                    f"states were found; ask for fewer ({split}={len(found)}) or a larger size"
                )
            found.append(self._task(sketch, split))
        return tuple(found)

    def read(self, task: Task) -> GameText:
        """Make the game of a task."""
        kind, _, seed = task.key.rpartition("-")
        if kind not in TASK_TYPES or not seed.isdigit():
            raise ConfigError(f"'{task.key}' names no generated problem; such as {TASK_TYPES[0]}-7")
        upstream, size = self._upstream, self._recipe.size
        sketch = self._sketch(kind, int(seed), task.split)
        without = HELD_OUT if self._recipe.hold_out_objects and task.split is Split.TRAIN else ()
        problem = write_problem(upstream, sketch, size=size, without=frozenset(without))
        grammar = upstream.grammar.replace(NO_GOAL, sketch.goal)
        return make_game_text(upstream.domain, grammar, problem)

    def _task(self, sketch: Sketch, split: Split) -> Task:
        key = f"{sketch.task_type}-{sketch.seed}"
        return Task(f"{self._name}/{key}", self._env, key, split, goal=sketch.goal)

    def _sketch(self, kind: str, seed: int, split: Split) -> Sketch:
        held_out = None if not self._recipe.hold_out_objects else split is not Split.TRAIN
        if (kind, held_out) not in self._goals:
            goals = possible_goals(self._upstream, kind, held_out=held_out)
            self._goals[kind, held_out] = goals
        goals, size = self._goals[kind, held_out], self._recipe.size
        return draw_sketch(self._upstream, kind, seed, size=size, goals=goals)

    def _stream(self, split: Split, kind: str) -> Iterator[Sketch]:
        seen: set[str] = set()
        seed, tries = _FIRST_SEED[split], 0
        while tries < _TRIES:
            sketch = self._sketch(kind, seed, split)
            seed, tries = seed + 1, tries + 1
            if split_of(sketch) is split and sketch.first_state not in seen:
                seen.add(sketch.first_state)
                tries = 0
                yield sketch


def split_of(sketch: Sketch) -> Split:
    """Return the split that a first state belongs to."""
    part = derive_seed("alfworld split", sketch.first_state) % _SHARE
    return Split.DEV if part == 0 else Split.TEST if part <= 2 else Split.TRAIN
