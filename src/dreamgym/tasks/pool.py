"""The pool: every task that may be practised, real or made up, with its history.

Entries are values; the pool replaces them. How an entry changes by a visit is one pure function,
so that a run which is resumed comes to the same pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dreamgym.codec import decode, encode
from dreamgym.errors import ConfigError
from dreamgym.tasks.value import Visit, group_value
from dreamgym.types import Observation, Opening, Source, Split, Task

INFEASIBLE, UNKNOWN, FAILED, CROWDED = "infeasible", "unknown", "failed", "crowded-out"
"""Why a made-up task was given up: never solved; its dream never knew; always broke; no room."""


class TaskState(StrEnum):
    """Where a task stands."""

    FRESH = "fresh"
    """Never practised."""
    ACTIVE = "active"
    """Practised, and neither of the following."""
    MASTERED = "mastered"
    """Always solved of late: it rests, and comes back to be checked."""
    RETIRED = "retired"
    """Not practised any more; see the reason."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A task and what is known about it."""

    task: Task
    """Its goal is filled in once it is known."""
    opening: str = ""
    """Its first state, once it is known."""
    state: TaskState = TaskState.FRESH
    reason: str = ""
    """Why it is mastered or retired."""
    since: int = 0
    """The step at which it came to be in this state."""
    visits: int = 0
    """Groups played."""
    wins: int = 0
    """Episodes that ever succeeded."""
    recent: tuple[Visit, ...] = ()
    """What came of the last groups, oldest first."""
    value: float | None = None
    """Eq. 7 of the last group that had two outcomes or more."""
    valued: int = 0
    """The step of that group."""

    @property
    def synthetic(self) -> bool:
        """Whether it was made up."""
        return self.task.source is Source.DREAM

    @property
    def last_seen(self) -> int | None:
        """The step of the last visit."""
        return self.recent[-1].step if self.recent else None

    @property
    def text(self) -> str:
        """What tells tasks apart: goal and first state; empty while neither is known."""
        return f"{self.task.goal}\n{self.opening}".strip()

    def as_opening(self) -> Opening:
        """Return goal and first state as what a reset answers."""
        return Opening(self.task, Observation(self.opening))


@dataclass(frozen=True, slots=True)
class Rules:
    """When a task is mastered, comes back, or is given up."""

    mastery_visits: int = 2
    """Visits in a row, all solved, after which a task is mastered."""
    rest: int = 20
    """Steps that a mastered task rests."""
    feasible_visits: int = 3
    """Visits within which a made-up task must be solved once."""
    kept: int = 4
    """Visits that are remembered."""

    def __post_init__(self) -> None:
        """Refuse rules that make no sense."""
        for name in ("mastery_visits", "feasible_visits", "kept"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.kept < max(self.mastery_visits, self.feasible_visits):
            raise ConfigError(f"{self.kept} visits are kept, fewer than the rules look back")

    def live(self, entry: Entry, step: int) -> bool:
        """Say whether a task may be drawn."""
        if entry.state is TaskState.MASTERED:
            return step - entry.since >= self.rest
        return entry.state is not TaskState.RETIRED

    def after(self, entry: Entry, visit: Visit) -> Entry:
        """Return the entry after a visit."""
        value = group_value(visit.rewards)
        entry = replace(
            entry,
            visits=entry.visits + 1,
            wins=entry.wins + sum(reward >= 1.0 for reward in visit.rewards),
            recent=(*entry.recent, visit)[-self.kept :],
            value=entry.value if value is None else value,
            valued=entry.valued if value is None else visit.step,
        )
        return self._judged(entry, visit.step)

    def _judged(self, entry: Entry, step: int) -> Entry:
        latest = entry.recent[-self.mastery_visits :]
        if len(latest) == self.mastery_visits and all(visit.solved for visit in latest):
            reason = f"solved {len(latest)} times in a row"
            return replace(entry, state=TaskState.MASTERED, reason=reason, since=step)
        if entry.synthetic and entry.visits >= self.feasible_visits and not entry.wins:
            return retired(entry, _why_never(entry.recent), step)
        if entry.state is TaskState.ACTIVE:
            return entry
        return replace(entry, state=TaskState.ACTIVE, reason="", since=step)


def retired(entry: Entry, reason: str, step: int) -> Entry:
    """Return the entry, given up."""
    return replace(entry, state=TaskState.RETIRED, reason=reason, since=step)


def _why_never(visits: Sequence[Visit]) -> str:
    if any(visit.rewards for visit in visits):
        return INFEASIBLE
    return UNKNOWN if any(visit.unknown for visit in visits) else FAILED


class TaskPool:
    """Entries by id, real tasks first, then made-up ones in the order of their coming.

    Args:
        tasks: the real tasks to practise; all of the train split, or they are refused.
        openings: how they open, by id, where that is known before they are played.
    """

    def __init__(
        self, tasks: Sequence[Task], openings: Mapping[str, Opening] | None = None
    ) -> None:
        if not tasks:
            raise ConfigError("there are no tasks to practise: the pool is empty")
        self._entries: dict[str, Entry] = {}
        for task in tasks:
            if task.split is not Split.TRAIN:
                raise ConfigError(f"{task.id} is of the {task.split} split: it must not be trained")
            known = (openings or {}).get(task.id)
            seen = known.observation.text if known is not None else ""
            named = replace(task, goal=known.task.goal) if known is not None else task
            self._entries[task.id] = Entry(named, seen)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._entries

    def __getitem__(self, task_id: str) -> Entry:
        return self._entries[task_id]

    def put(self, entry: Entry) -> None:
        """Keep an entry, in place of the one before it."""
        self._entries[entry.task.id] = entry

    def state(self) -> list[dict[str, Any]]:
        """Return all that a new pool of the same tasks does not know, as JSON holds it."""
        return [_packed(entry) for entry in self if entry.visits or entry.synthetic]

    def restore(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Go on from such a state."""
        for packed in state:
            entry = _unpacked(packed)
            if not entry.synthetic and entry.task.id not in self:
                raise ConfigError(f"the checkpoint knows {entry.task.id}, this pool does not")
            self.put(entry)


def _packed(entry: Entry) -> dict[str, Any]:
    return {
        "task": encode(entry.task),
        "opening": entry.opening,
        "state": entry.state.value,
        "reason": entry.reason,
        "since": entry.since,
        "visits": entry.visits,
        "wins": entry.wins,
        "recent": [[one.step, list(one.rewards), one.unknown, one.failed] for one in entry.recent],
        "value": entry.value,
        "valued": entry.valued,
    }


def _unpacked(packed: Mapping[str, Any]) -> Entry:
    recent = tuple(
        Visit(step, tuple(rewards), unknown, failed)
        for step, rewards, unknown, failed in packed["recent"]
    )
    return Entry(
        **{
            **packed,
            "task": decode(packed["task"], Task),
            "state": TaskState(packed["state"]),
            "recent": recent,
        }
    )
