"""Recording: play slots and store what happened, losing and repeating nothing.

A trajectory is acknowledged when the store's transaction is done. They are stored in slot order, so
that a store's content never depends on timing; a finished episode waits for slower ones before it.
Whatever a crash cuts off was never acknowledged and is simply played again by the next call, under
the same id; an interrupt stores all that is finished first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from dreamgym.protocols import World
from dreamgym.rollout.collect import Slot, collect
from dreamgym.types import Trajectory

BATCH = 64
"""Trajectories per transaction at most."""
FLUSH_SECONDS = 1.0
"""A trajectory whose turn has come waits no longer than this for its transaction."""


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
        flushed = time.monotonic()
        if not waiting:
            return
        store.add([item for item in waiting if item.error is None])
        for item in waiting:
            if item.error is not None:
                on_failure(item)
        waiting.clear()

    on_progress(Recorded(done, len(slots), won, steps))
    stream = collect(missing, world, concurrency=concurrency, on_leftover=waiting.append)
    try:
        async for trajectory in _with_pauses(stream):
            if trajectory is not None:
                waiting.append(trajectory)
                done, won = done + 1, won + trajectory.success
                steps += len(trajectory.steps)
                on_progress(Recorded(done, len(slots), won, steps))
            if len(waiting) >= BATCH or time.monotonic() - flushed > FLUSH_SECONDS:
                flush()
    finally:
        await stream.aclose()
        flush()


async def _with_pauses(
    stream: AsyncGenerator[Trajectory, None],
) -> AsyncIterator[Trajectory | None]:
    """Yield what a stream yields, and None whenever it has been silent for a while."""
    while True:
        coming = asyncio.ensure_future(anext(stream, _END))
        try:
            while not (await asyncio.wait({coming}, timeout=FLUSH_SECONDS))[0]:
                yield None
        except BaseException:
            coming.cancel()
            await asyncio.wait({coming})
            raise
        trajectory = coming.result()
        if trajectory is _END:
            return
        yield trajectory


_END: Any = object()


def recorded_of(slots: Sequence[Slot], stored: Iterable[Trajectory]) -> Iterable[Trajectory]:
    """Yield the stored trajectories that belong to the slots."""
    wanted = {slot.trajectory_id for slot in slots}
    return (trajectory for trajectory in stored if trajectory.id in wanted)
