"""A read-only view of a store at one moment: what a training step retrieves from.

It holds a read transaction of its own, so it costs nothing to take, and rows that are evicted
meanwhile can still be read; the file cannot shrink below it until it is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from dreamgym.replay.database import Database
from dreamgym.replay.key import KeyEncoder
from dreamgym.replay.lookup import Hit, Moment, Query, look_up
from dreamgym.replay.packing import unpack_trajectory
from dreamgym.replay.store import read_task
from dreamgym.types import Source, Split, Transition


class Snapshot:
    """A store as it was at one moment; later writes do not change it. A `Retriever`."""

    def __init__(
        self,
        database: Database,
        moment: Moment,
        *,
        encoder: KeyEncoder,
        real_slots: int,
        env: str | None,
    ) -> None:
        self._database = database
        self._moment = moment
        self._encoder = encoder
        self._real_slots = real_slots
        self._env = env

    def search(
        self,
        state: str,
        action: str,
        *,
        k: int,
        exclude_trajectory: str | None = None,
        env: str | None = None,
        source: Source | None = None,
        split: Split | None = None,
    ) -> tuple[Hit, ...]:
        """Return the k nearest transitions, nearest first, none of the excluded trajectory."""
        query = Query(state, action, exclude_trajectory, env or self._env, source, split)
        return self.search_batch([query], k=k)[0]

    def search_batch(self, queries: Sequence[Query], *, k: int) -> list[tuple[Hit, ...]]:
        """Answer many queries together; each gets what it would get alone."""
        if self._env is not None:
            queries = [replace(one, env=one.env or self._env) for one in queries]
        keys = self._encoder.encode([q.state for q in queries], [q.action for q in queries])
        with self._database.reading() as connection:
            return look_up(
                connection, self._moment, queries, keys=keys, k=k, real_slots=self._real_slots
            )

    def recall(
        self, task_id: str, *, exclude_trajectory: str | None = None
    ) -> tuple[Transition, ...]:
        """Return all real steps of the task, in the order of their recording."""
        with self._database.reading() as connection:
            bodies = read_task(connection, task_id)
        told = (unpack_trajectory(body) for body in bodies)
        return tuple(
            one
            for trajectory in told
            if trajectory.id != exclude_trajectory
            and trajectory.provenance.source is Source.REAL
            and self._env in (None, trajectory.task.env)
            for one in trajectory.transitions()
        )

    def close(self) -> None:
        """Let the store reclaim what only this snapshot still sees."""
        self._database.close()

    def __enter__(self) -> Snapshot:
        """Return itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
