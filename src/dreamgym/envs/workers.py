"""A pool of worker processes, each with one engine and many games.

The pool places sessions evenly over its workers, gives every call a time limit and counts what the
engines did. How a single worker sends, replays and recovers is in `worker.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from dataclasses import dataclass
from typing import Any

from dreamgym.envs.worker import Call, Session, Tally, Worker
from dreamgym.errors import ConfigError, EnvError, MissingDependency
from dreamgym.types import Task


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What a pool did so far."""

    workers: int
    steps: int
    """Steps answered, replays not counted."""
    engine_seconds: float
    """Time spent inside engine calls, summed over the workers."""
    restarts: int
    """Processes that hung or died while they served."""
    replayed: int
    """Sessions played again because their worker was replaced."""


class WorkerPool:
    """Runs the engine of one spec in processes. Belongs to the event loop of its first call."""

    def __init__(self, spec: str, *, workers: int | None = None, time_limit: float = 60.0) -> None:
        count = workers if workers is not None else os.cpu_count() or 1
        if count < 1:
            raise ConfigError(f"{count} workers; at least one is needed")
        if not time_limit > 0:
            raise ConfigError(f"a time limit of {time_limit} s; it must be more than nothing")
        self._tally = Tally()
        self._workers = [Worker(spec, tally=self._tally) for _ in range(count)]
        self._time_limit = time_limit
        self._tick = min(0.5, max(0.01, time_limit / 20))
        self._numbers = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def identity(self) -> tuple[str, str]:
        """Return the engine's version and its mapper's digest."""
        worker = self._workers[0]
        if worker.identity is None:
            await self._call(worker, "hello", None)
        assert worker.identity is not None
        return worker.identity

    async def ask(self, operation: str, payload: Any) -> Any:
        """Ask the engine something that belongs to no episode: `tasks` or `entities`."""
        usable = self._usable()
        running = [worker for worker in usable if worker.identity is not None]
        worker = min(running or usable[:1], key=lambda one: one.load)
        return await self._call(worker, operation, payload)

    def _usable(self) -> list[Worker]:
        """Return the workers that take calls, or where there are none, those that say why."""
        for worker in self._workers:
            if isinstance(worker.given_up, ConfigError | MissingDependency):
                return [worker]  # the same would happen to any other
        return [worker for worker in self._workers if worker.given_up is None] or self._workers

    async def open(self, task: Task) -> Session:
        """Open a game on the worker with the fewest sessions, the first of equals."""
        worker = min(self._usable(), key=lambda one: one.sessions)
        session = Session(next(self._numbers), task, worker)
        worker.sessions += 1
        try:
            await self._call(worker, "open", task, session)
        except BaseException:
            # Also when the caller was cancelled: a game that opens after all is closed again.
            worker.sessions -= 1
            worker.submit(Call("close", None, self._time_limit, session))
            raise
        return session

    async def play(self, session: Session, operation: str, payload: Any = None) -> Any:
        """Carry out `reset`, `step` or `expert` in a session."""
        return await self._call(session.worker, operation, payload, session)

    async def close_session(self, session: Session) -> None:
        """End a session."""
        session.worker.sessions -= 1
        if not self._closed:
            await self._call(session.worker, "close", None, session)

    def stats(self) -> PoolStats:
        """Return what was done so far."""
        tally = self._tally
        return PoolStats(
            workers=len(self._workers),
            steps=tally.steps,
            engine_seconds=tally.engine_seconds,
            restarts=tally.restarts,
            replayed=tally.replayed,
        )

    async def close(self) -> None:
        """End every process. Whatever still waits for an answer gets an `EnvError`."""
        if self._loop is None:
            return
        self._check_loop()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*(worker.close(_CLOSED) for worker in self._workers))

    def _call(
        self, worker: Worker, operation: str, payload: Any, session: Session | None = None
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._timer = loop.call_later(self._tick, self._watch, loop, loop.time())
        self._check_loop()
        if self._closed:
            raise EnvError(*_CLOSED.args)
        future: asyncio.Future[Any] = loop.create_future()
        worker.submit(Call(operation, payload, self._time_limit, session, future))
        return future

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise ConfigError(
                "a world belongs to the event loop it was first used in; "
                "open, use and close it inside one asyncio.run"
            )

    def _watch(self, loop: asyncio.AbstractEventLoop, before: float) -> None:
        """Check every worker's time, at a steady beat."""
        now = loop.time()
        # A loop that was blocked for long could not take answers: that time is nobody's lateness.
        elapsed = min(now - before, 2 * self._tick)
        for worker in self._workers:
            worker.check(elapsed)
        self._timer = loop.call_later(self._tick, self._watch, loop, now)


_CLOSED = EnvError("the world was closed")
