"""The curriculum: practise what is neither too easy nor too hard, and make more of it.

One object that the training loop asks for tasks and tells what came of them. All that it decides
follows from the seed, the step and what it was told, so its state is a few lines of JSON.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.llm.breaker import EventSink
from dreamgym.rollout.groups import Group
from dreamgym.tasks.clusters import TaskClusters
from dreamgym.tasks.pool import CROWDED, Entry, Rules, TaskPool, TaskState, retired
from dreamgym.tasks.refill import Refill, unheard
from dreamgym.tasks.value import Worth, group_value, visit_of
from dreamgym.types import Source, Task, derive_seed

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Mix:
    """What a batch is made of."""

    synthetic_share: float = 0.3
    """Lambda: the largest share of made-up tasks in a batch."""
    most_synthetic: int = 64
    """Made-up tasks that are kept for practice; beyond, those worth least go."""

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        if not 0.0 <= self.synthetic_share <= 1.0:
            raise ConfigError(f"synthetic_share is {self.synthetic_share}; it is between 0 and 1")
        if self.most_synthetic < 1:
            raise ConfigError(f"most_synthetic is {self.most_synthetic}; it must be at least 1")


class Curriculum:
    """Draws tasks by their value and refills the pool. A `TaskSampler` of the training loop.

    Args:
        pool: the tasks.
        worth: how value and age make a weight.
        rules: when tasks are mastered or retired.
        mix: how much of a batch may be made up.
        clusters: value is that of a task's cluster (for PPO); without, of the task itself.
        refill: makes new tasks; without, the pool is what it is.
        seed: of the run.
        on_event: is told when tasks are retired, and by `refill` what was made.
    """

    def __init__(
        self,
        pool: TaskPool,
        *,
        worth: Worth | None = None,
        rules: Rules | None = None,
        mix: Mix | None = None,
        clusters: TaskClusters | None = None,
        refill: Refill | None = None,
        seed: int = 0,
        on_event: EventSink = unheard,
    ) -> None:
        self.pool = pool
        self._worth, self._rules, self._mix = worth or Worth(), rules or Rules(), mix or Mix()
        self._clusters, self._refill = clusters, refill
        self._seed, self._on_event = seed, on_event
        self._step = 0

    def draw(self, step: int, count: int) -> tuple[Task, ...]:
        """Return the tasks of a step: those of high value first of all, none twice if it can be."""
        self._step = step
        rng = random.Random(derive_seed(self._seed, "curriculum", step))
        worth = self._worths(step)

        def shuffled(wanted: Callable[[Entry], bool]) -> list[Task]:
            return _shuffled([one for one in self.pool if wanted(one)], worth, rng)

        live = self._rules.live
        made = shuffled(lambda one: one.synthetic and live(one, step))
        made = made[: int(self._mix.synthetic_share * count)]
        real = shuffled(lambda one: not one.synthetic and live(one, step))
        # Those that rest are there for when all others are taken.
        real += shuffled(lambda one: not one.synthetic and not live(one, step))
        wanted = count - len(made)
        drawn = [real[place % len(real)] for place in range(wanted)]
        return (*drawn, *made)

    def _worths(self, step: int) -> dict[str, float]:
        found = self._values()
        return {name: self._worth.now(value, step - seen) for name, (value, seen) in found.items()}

    def _values(self) -> dict[str, tuple[float | None, int]]:
        """Return the value of each task (Eq. 7) and the step that it is of."""
        own = {one.task.id: (one.value, one.valued) for one in self.pool}
        if self._clusters is None:
            return own
        standing = [one for one in self.pool if one.state is not TaskState.RETIRED]
        return own | self._clusters.values(standing)

    def observe(self, groups: Sequence[Group]) -> Figures:
        """Take note of what came of the tasks."""
        worths: list[float] = []
        for group in groups:
            visit = visit_of(group, self._step)
            before = self._described(self.pool[group.task.id], group)
            entry = self._rules.after(before, visit)
            self.pool.put(entry)
            value = group_value(visit.rewards)
            worths += [value] if value is not None else []
            if entry.state is TaskState.RETIRED and before.state is not TaskState.RETIRED:
                self._tell_retired(entry)
        made = [group for group in groups if group.task.source is Source.DREAM]
        figures = self._counts()
        figures["tasks/value"] = sum(worths) / len(worths) if worths else 0.0
        figures["tasks/synthetic_share"] = len(made) / len(groups) if groups else 0.0
        if made:
            rewards = [reward for one in made for reward in visit_of(one, 0).rewards]
            figures["tasks/success_synthetic"] = sum(rewards) / max(1, len(rewards))
        return figures

    @staticmethod
    def _described(entry: Entry, group: Group) -> Entry:
        """Return the entry with goal and first state, as an engine tells them when it is reset."""
        sound = [one for one in group.episodes if one.error is None and one.opening.text]
        if entry.opening or not sound:
            return entry
        task = replace(entry.task, goal=sound[0].task.goal)
        return replace(entry, task=task, opening=sound[0].opening.text)

    def _tell_retired(self, entry: Entry) -> None:
        self._on_event(
            "task_retired",
            step=self._step,
            id=entry.task.id,
            reason=entry.reason,
            goal=entry.task.goal,
            first_state=entry.opening,
        )

    def _counts(self) -> Figures:
        standing = [one for one in self.pool if one.state is not TaskState.RETIRED]
        states = Counter(one.state for one in self.pool)
        figures = {
            "tasks/pool": float(len(standing)),
            "tasks/synthetic": float(sum(one.synthetic for one in standing)),
        }
        figures |= {f"tasks/{state.value}": float(states[state]) for state in TaskState}
        for reason in sorted({one.reason for one in self.pool if one.state is TaskState.RETIRED}):
            count = sum(one.reason == reason for one in self.pool)
            figures[f"tasks/retired_{reason.replace('-', '_')}"] = float(count)
        if self._clusters is not None:
            figures["tasks/clusters"] = float(len(set(self._clusters.labels(standing).values())))
        return figures

    async def refill(self, step: int) -> Figures:
        """Make new tasks from those of the highest value, where it is time to."""
        if self._refill is None:
            return {}
        if self._refill.due(step):
            sources = self._sources(step, self._refill.plan.sources)
            if sources:
                for entry in await self._refill.make(sources, tuple(self.pool), step):
                    self.pool.put(replace(entry, since=step))
                self._make_room(step)
            else:
                why = "no task was seen both solved and failed, or untried ones fill the pool"
                self._on_event("refill_skipped", step=step, why=why)
        named = {f"tasks/{name}": value for name, value in self._refill.figures().items()}
        return self._counts() | named

    def _sources(self, step: int, most: int) -> tuple[Entry, ...]:
        """Return the tasks of the highest value; none while untried ones take all the room."""
        fresh = sum(one.synthetic and one.state is TaskState.FRESH for one in self.pool)
        room = self._mix.most_synthetic - fresh
        rng = random.Random(derive_seed(self._seed, "sources", step))
        ranked: list[tuple[float, float, Entry]] = []
        values = self._values()
        for one in self.pool:
            value, seen = values[one.task.id]
            if value and one.opening and one.state is not TaskState.RETIRED:
                fading = value * self._worth.kept(step - seen)
                # Where values are equal, as within a cluster, chance decides.
                ranked.append((fading, rng.random(), one))
        ranked.sort(key=lambda row: row[:2], reverse=True)
        return tuple(one for _, _, one in ranked[: max(0, min(most, room))])

    def _make_room(self, step: int) -> None:
        made = [one for one in self.pool if one.synthetic and one.state is not TaskState.RETIRED]
        excess = len(made) - self._mix.most_synthetic
        worth = self._worths(step)
        # Those that rest are worth nothing now, and those that nobody has tried stay.
        tried = [one for one in made if one.state is not TaskState.FRESH]
        tried.sort(key=lambda one: (self._rules.live(one, step), worth[one.task.id]))
        for one in tried[: max(0, excess)]:
            gone = retired(one, CROWDED, step)
            self.pool.put(gone)
            self._tell_retired(gone)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        refill = self._refill.state() if self._refill is not None else None
        return {"pool": self.pool.state(), "refill": refill}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        if (self._refill is None) != (state.get("refill") is None):
            raise ConfigError("this checkpoint was made with another curriculum")
        self.pool.restore(state["pool"])
        if self._refill is not None:
            self._refill.restore(state["refill"])

    def rows(self) -> list[dict[str, Any]]:
        """Return the pool as a table, for `tasks.jsonl`."""
        values = self._values()
        return [_row(one, values[one.task.id][0]) for one in self.pool]


def _shuffled(
    entries: Sequence[Entry], worth: Mapping[str, float], rng: random.Random
) -> list[Task]:
    """Return tasks in a random order in which each next one is drawn in proportion to its worth."""
    # The least of exponential times, each as fast as its weight: Efraimidis and Spirakis (2006).
    times = [-math.log(1.0 - rng.random()) / worth[one.task.id] for one in entries]
    order = sorted(range(len(entries)), key=times.__getitem__)
    return [entries[place].task for place in order]


def _row(entry: Entry, value: float | None) -> dict[str, Any]:
    return {
        "id": entry.task.id,
        "source": entry.task.source.value,
        "state": entry.state.value,
        "reason": entry.reason,
        "value": value,
        "visits": entry.visits,
        "wins": entry.wins,
        "last_seen": entry.last_seen,
        "recent": [list(visit.rewards) for visit in entry.recent],
        "parents": list(entry.task.parents),
        "goal": entry.task.goal,
        "first_state": entry.opening,
    }
