"""Recording: play slots and put what happened into an experience store, losing and repeating nothing.

A trajectory is acknowledged when the store's transaction is done. Whatever a crash cuts off was
never acknowledged and is simply played again by the next call, under the same id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from dreamgym.protocols import World
from dreamgym.rollout.collect import Slot, collect
from dreamgym.types import Trajectory

BATCH = 64
"""Trajectories per transaction at most: an interrupt loses fewer than this many unacknowledged."""
FLUSH_SECONDS = 1.0
"""A finished trajectory waits no longer than this for its transaction."""


class TrajectoryStore(Protocol):
    """Where recorded trajectories go."""

    def add(self, trajectories: Sequence[Trajectory]) -> object:
        """Store trajectories; when this returns they survive any crash."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """How far a recording has come."""

    done: int
    total: int
    won: int
    steps: int


async def record(
    slots: Sequence[Slot],
    world: World,
    store: TrajectoryStore,
    *,
    finished: AbstractSet[str],
    max_steps: int,
    concurrency: int,
    on_failure: Callable[[Trajectory], None],
    on_progress: Callable[[Recorded], None] = lambda state: None,
) -> None:
    """Play the slots that are not finished yet and store every trajectory.

    Failed episodes are handed to `on_failure` instead: they are not experience. An interrupt stores
    what is complete before it goes on its way.
    """
    missing = [slot for slot in slots if slot.trajectory_id not in finished]
    waiting: list[Trajectory] = []
    done, won, steps, flushed = len(slots) - len(missing), 0, 0, time.monotonic()

    def flush() -> None:
        nonlocal flushed
        store.add([item for item in waiting if item.error is None])
        for item in waiting:
            if item.error is not None:
                on_failure(item)
        waiting.clear()
        flushed = time.monotonic()

    on_progress(Recorded(done, len(slots), won, steps))
    try:
        async for trajectory in collect(
            missing, world, max_steps=max_steps, concurrency=concurrency
        ):
            waiting.append(trajectory)
            done, won = done + 1, won + trajectory.success
            steps += len(trajectory.steps)
            if len(waiting) >= BATCH or time.monotonic() - flushed > FLUSH_SECONDS:
                flush()
            on_progress(Recorded(done, len(slots), won, steps))
    finally:
        if waiting:
            flush()


def recorded_of(slots: Sequence[Slot], stored: Iterable[Trajectory]) -> Iterable[Trajectory]:
    """Yield the stored trajectories that belong to the slots."""
    wanted = {slot.trajectory_id for slot in slots}
    return (trajectory for trajectory in stored if trajectory.id in wanted)
