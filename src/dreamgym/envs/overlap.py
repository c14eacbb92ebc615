"""How held out is a split? What its tasks share with the training split, counted.

Seeds and names do not tell: engines ignore folds, small worlds repeat, splits share their things.
So tasks are opened and compared by what an agent would see: first state, goal, entities. Nothing is
judged here; the figure is printed beside every result that it qualifies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.world import RealWorld
from dreamgym.errors import EnvError
from dreamgym.files import cache_dir, write_atomically
from dreamgym.types import Split, Task, digest

LIMIT = 1000
"""How many tasks of each split are looked at unless told."""
SECONDS = 60.0
"""How long that may take; some engines need seconds for a task. What was seen is kept on disk."""
SEED = 0
_KEPT = frozenset({"twx", "textworld", "alfworld"})
"""Families whose starts follow from spec, version and mapper, so that a look can be kept."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """What the tasks of a split share with the training split, as far as they were looked at."""

    split: Split
    tasks: int
    """Tasks of the split that were looked at."""
    all_tasks: int
    """Tasks that the split has."""
    train_tasks: int
    all_train_tasks: int
    first_states: int
    """Distinct first states (goal and text) among the tasks of the split."""
    shared_first_states: int
    """Tasks whose first state is also one of training."""
    shared_goals: int
    """Tasks whose goal is also one of training."""
    tasks_with_shared_entities: int
    entities: int
    """Distinct entities that the first states of the split mention."""
    shared_entities: int
    """Those of them that training mentions too."""

    @property
    def entity_share(self) -> float:
        """The share of the split's entities that training mentions too; 0 where none are named."""
        return self.shared_entities / self.entities if self.entities else 0.0

    def describe(self) -> str:
        """Say it in one line."""
        of_all = "" if self.tasks == self.all_tasks else f" (of {self.all_tasks})"
        things = f"{self.shared_entities} of {self.entities} entities"
        if self.split is Split.TRAIN:
            starts = f"{self.tasks}{of_all} tasks have {self.first_states} different first states"
            return f"train: {starts} and mention {self.entities} entities"
        of_train = "" if self.train_tasks == self.all_train_tasks else f" of {self.all_train_tasks}"
        if not self.tasks or not self.train_tasks:
            seen = f"{self.tasks} {self.split} and {self.train_tasks} train tasks were looked at"
            return f"held out: not known, since {seen}"
        verdict = "NOT held out" if self.shared_first_states else "held out"
        parts = [
            f"{verdict}: {self.shared_first_states} of {self.tasks} {self.split} tasks{of_all} "
            f"share a first state with {self.train_tasks}{of_train} train tasks",
            f"{self.shared_goals} share a goal",
            f"{things} also occur in training, in {self.tasks_with_shared_entities} tasks"
            if self.entities
            else "no entities are named",
        ]
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class _Start:
    """What is kept of a task's opening."""

    state: str
    goal: str
    entities: tuple[str, ...]


_STARTS = TypeAdapter(dict[str, _Start])


async def measure_overlap(
    world: RealWorld, split: Split, *, limit: int = LIMIT, seconds: float = SECONDS
) -> Overlap:
    """Open tasks of a split and of training, and count what they share.

    Args:
        world: Where the tasks are.
        split: The split to compare with training.
        limit: How many tasks of each split to look at.
        seconds: How long to go on opening tasks; those that were opened before cost nothing.
    """
    listed, train = await world.tasks(split), await world.tasks(Split.TRAIN)
    # In turn, so that there is something to compare however soon the time is up.
    pairs = zip_longest(listed[:limit], train[:limit])
    wanted = {task.id: task for pair in pairs for task in pair if task is not None}
    starts = await _look(world, list(wanted.values()), seconds=seconds)
    mine = [starts[task.id] for task in listed[:limit] if task.id in starts]
    theirs = [starts[task.id] for task in train[:limit] if task.id in starts]
    states, goals = {start.state for start in theirs}, {start.goal for start in theirs}
    known = {name for start in theirs for name in start.entities}
    named = {name for start in mine for name in start.entities}
    return Overlap(
        split=split,
        tasks=len(mine),
        all_tasks=len(listed),
        train_tasks=len(theirs),
        all_train_tasks=len(train),
        first_states=len({start.state for start in mine}),
        shared_first_states=sum(start.state in states for start in mine),
        shared_goals=sum(start.goal in goals for start in mine),
        tasks_with_shared_entities=sum(not known.isdisjoint(start.entities) for start in mine),
        entities=len(named),
        shared_entities=len(named & known),
    )


async def _look(world: RealWorld, tasks: Sequence[Task], *, seconds: float) -> Mapping[str, _Start]:
    """Return how tasks begin, from earlier looks and by opening the rest while time lasts."""
    info = await world.info()
    name = digest("\n".join((info.spec, info.version, info.mapper)), size=16)
    path = cache_dir("overlap") / f"{name}.json"
    # Of an engine under the user's own hands, nobody says when its starts change.
    kept = parse_spec(info.spec).family in _KEPT
    known = _read(path) if kept else {}
    missing = [task for task in tasks if task.id not in known]
    found: dict[str, _Start] = {}
    deadline = time.monotonic() + seconds
    places = asyncio.Semaphore(2 * world.stats().workers)

    async def look(task: Task) -> None:
        async with places:
            if time.monotonic() < deadline:
                start = await _open(world, task)
                if start is not None:
                    found[task.id] = start

    await asyncio.gather(*(look(task) for task in missing))
    if found and kept:
        write_atomically(path, _STARTS.dump_json(_read(path) | found))
    return known | found


async def _open(world: RealWorld, task: Task) -> _Start | None:
    """Open a task and note how it begins; a task that breaks is not counted."""
    try:
        env = await world.open(task)
        try:
            opening = await env.reset(SEED)
        finally:
            await env.close()
        named = await world.entities(opening)
    except EnvError:
        return None
    goal = opening.task.goal
    state = digest(f"{goal}\n{opening.observation.text}", size=16)
    return _Start(state, digest(goal, size=16), tuple(sorted(named)))


def _read(path: Path) -> dict[str, _Start]:
    try:
        return _STARTS.validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return {}
