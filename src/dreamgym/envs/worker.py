"""One worker of a pool: a queue of calls in front of a process that may break at any time.

Calls are sent in batches and answered in order. When the process hangs or dies, the call that it
was working on fails, and with it that episode; every other session is played again from its journal
in the next process, and the calls that waited behind are sent once more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from dreamgym.envs import wire
from dreamgym.envs.process import EngineProcess
from dreamgym.errors import (
    ConfigError,
    DreamGymError,
    EnvCrash,
    EnvError,
    EnvTimeout,
    MissingDependency,
)
from dreamgym.types import Observation, Task

START_SECONDS = 120.0
"""How long a process may take to make its engine."""
START_ATTEMPTS = 3
"""How many starts in a row may fail before the worker is given up."""
STOP_SECONDS = 2.0
"""How long a process may take to close its engine before it is killed."""


@dataclass(slots=True, eq=False)
class Session:
    """One episode's journal: enough to play it again in another process."""

    id: int
    task: Task
    worker: Worker
    generation: int = -1
    """The process it was last seen in, counted by its worker."""
    seed: int | None = None
    actions: list[str] = field(default_factory=list)
    last: Observation | None = None
    ended: bool = False
    engine_seconds: float = 0.0
    failure: DreamGymError | None = None
    """Why no more can be had from this episode."""


@dataclass(slots=True, eq=False)
class Call:
    """One request and the place for its answer."""

    operation: str
    payload: Any
    limit: float
    """How many seconds the process may work on it."""
    session: Session | None = None
    future: asyncio.Future[Any] | None = None

    def succeed(self, answer: Any) -> None:
        """Hand the answer over, unless nobody waits any more."""
        if self.future is not None and not self.future.done():
            self.future.set_result(answer)

    def fail(self, error: DreamGymError) -> None:
        """Hand over an error of its own (a shared one would collect tracebacks)."""
        if self.future is not None and not self.future.done():
            self.future.set_exception(type(error)(*error.args))

    def __str__(self) -> str:
        """Name the call for an error message."""
        where = f" (task {self.session.task.id})" if self.session is not None else ""
        return f"env.{self.operation}{where}"


@dataclass(slots=True)
class Tally:
    """What the workers of a pool did so far."""

    steps: int = 0
    engine_seconds: float = 0.0
    restarts: int = 0
    replayed: int = 0


class Worker:
    """A place for one process at a time."""

    def __init__(self, spec: str, *, tally: Tally) -> None:
        self.sessions = 0
        """How many sessions live here, for spreading them evenly."""
        self.identity: tuple[str, str] | None = None
        """The engine's version and its mapper's digest, once it has started."""
        self.given_up: DreamGymError | None = None
        """Why this worker takes no more calls."""
        self._spec = spec
        self._tally = tally
        self._queue: deque[Call] = deque()
        self._flying: deque[Call] = deque()
        self._process: EngineProcess | None = None
        self._generation = 0
        self._age = 0.0
        self._flush_due = False
        self._failed_starts = 0
        self._start_error: DreamGymError | None = None
        self._lost = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def load(self) -> int:
        """How many calls are waiting for an answer."""
        return len(self._queue) + len(self._flying)

    def submit(self, call: Call) -> None:
        """Queue a call; all calls of one turn of the event loop are sent together."""
        self._queue.append(call)
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if self.given_up is not None:
            while self._queue:
                self._queue.popleft().fail(self.given_up)
        elif self._process is None and self._queue:
            self._start()
        elif self._process is not None and self._process.ready and not self._lost.is_set():
            self._send(self._process)

    def _start(self) -> None:
        self._lost.clear()
        self._age = 0.0
        try:
            self._process = EngineProcess(
                self._spec, on_message=self._receive, on_lost=self._notice_loss
            )
        except OSError as error:
            self.given_up = EnvCrash(f"no worker process could be started: {error}")
            self._flush()
        else:
            self._spawn(self._process.connect())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, process: EngineProcess) -> None:
        batch = self._next_batch()
        if batch:
            if not self._flying:
                self._age = 0.0
            self._flying.extend(batch)
            process.write(
                wire.pack(
                    [
                        (call.operation, call.session.id if call.session else 0, call.payload)
                        for call in batch
                    ]
                )
            )

    def _next_batch(self) -> list[Call]:
        """Take every queued call, each preceded by its session's restoration where needed."""
        batch: list[Call] = []
        while self._queue:
            call = self._queue.popleft()
            session = call.session
            if session is not None:
                here = session.generation == self._generation
                if call.operation == "close" and not here:
                    call.succeed(None)  # its process is gone, and the game with it
                    continue
                if call.operation != "close" and session.failure is not None:
                    call.fail(session.failure)
                    continue
                if call.operation != "open" and not here:
                    batch.append(_restoration(session, limit=call.limit))
                session.generation = self._generation
            batch.append(call)
        return batch

    def _receive(self, message: Any) -> None:
        self._age = 0.0
        match message:
            case ("ready", version, mapper):
                assert self._process is not None
                self._process.ready = True
                self._failed_starts = 0
                self.identity = (version, mapper)
                self._flush()
            case ("failed", kind, text):
                self._start_error = wire.unpack_error(kind, text)
            case (seconds, kind, answer):
                self._deliver(seconds, kind, answer)

    def _deliver(self, seconds: float, error_kind: str, answer: Any) -> None:
        call = self._flying.popleft()
        session = call.session
        self._tally.engine_seconds += seconds
        error = wire.unpack_error(error_kind, answer) if error_kind else None
        if session is not None and call.operation != "close":
            session.engine_seconds += seconds
            error = session.failure or error
            if error is None:
                answer, error = self._write_journal(session, call, answer)
            elif call.operation == "restore":
                error = EnvCrash(f"not restored after its worker was replaced: {error}")
            session.failure = error
        if error is not None:
            call.fail(error)
        else:
            call.succeed(answer)

    def _write_journal(
        self, session: Session, call: Call, answer: Any
    ) -> tuple[Any, DreamGymError | None]:
        """Note what happened in an episode; return the answer as a value, or what is wrong."""
        match call.operation:
            case "step":
                try:
                    result = wire.unpack_step(answer)
                except ValueError as error:
                    return None, EnvError(f"{call}: {error}")
                session.actions.append(call.payload)
                session.last = result.observation
                session.ended = result.terminated or result.truncated
                self._tally.steps += 1
                return result, None
            case "reset":
                session.seed, session.last, session.ended = call.payload, answer.observation, False
                session.actions.clear()
            case "restore":
                self._tally.replayed += 1
                if answer != session.last:
                    return None, EnvCrash(_difference(session, answer))
        return answer, None

    def check(self, elapsed: float) -> None:
        """Let time pass: kill the process when it has worked too long on one call."""
        process = self._process
        if process is None or self._lost.is_set():
            return
        process.trim_log()
        if process.is_over():
            process.kill()  # something that it forked still holds the line
            return
        self._age += elapsed
        limit = START_SECONDS
        if process.ready:
            if not self._flying:
                return
            limit = self._flying[0].limit
        if self._age > limit:
            process.timed_out = True
            process.kill()

    def _notice_loss(self) -> None:
        self._lost.set()
        if self._process is not None:
            self._spawn(self._recover(self._process))

    async def _recover(self, process: EngineProcess) -> None:
        """Blame the call that was worked on and let all others go round again."""
        ending = await process.bury()
        if process.ready:
            self._tally.restarts += 1
            self._blame(process, ending)
        else:
            self._count_failed_start(process, ending)
        bystanders = [call for call in self._flying if call.operation != "restore"]
        self._flying.clear()
        self._queue.extendleft(reversed(bystanders))
        self._generation += 1
        self._process = None
        self._flush()

    def _blame(self, process: EngineProcess, ending: str) -> None:
        if not self._flying:
            return
        call = self._flying.popleft()
        error: EnvError
        if process.timed_out:
            error = EnvTimeout(f"{call}: no answer in {call.limit:g} s; its worker was replaced")
        else:
            error = EnvCrash(f"{call}: the worker died ({ending}) and was replaced")
        if call.session is not None:
            call.session.failure = error
        call.fail(error)

    def _count_failed_start(self, process: EngineProcess, ending: str) -> None:
        self._failed_starts += 1
        error, self._start_error = self._start_error, None
        if isinstance(error, ConfigError | MissingDependency):
            self.given_up = error
        elif self._failed_starts >= START_ATTEMPTS:
            reason = error or (f"no hello in {START_SECONDS:g} s" if process.timed_out else ending)
            what = f"the engine of {self._spec} did not start, {self._failed_starts} times in a row"
            self.given_up = EnvCrash(f"{what}: {reason}")

    async def close(self, error: DreamGymError) -> None:
        """Answer all that is open with this error and end the process."""
        self.given_up = error
        for call in (*self._flying, *self._queue):
            call.fail(error)
        self._queue.clear()
        await asyncio.gather(*self._tasks)
        process, self._process = self._process, None
        if process is None:
            return
        if process.ready and not self._lost.is_set():
            process.write(wire.pack([("stop", 0, None)]))
            try:
                await asyncio.wait_for(self._lost.wait(), STOP_SECONDS)
            except TimeoutError:
                process.kill()
        else:
            process.kill()
        await process.bury()
        await self._lost.wait()


def _restoration(session: Session, *, limit: float) -> Call:
    journal = (session.task, session.seed, tuple(session.actions))
    # The whole replay is one call: it may take what the episode took before, and then some.
    return Call("restore", journal, limit + 4 * session.engine_seconds, session)


def _difference(session: Session, found: Observation | None) -> str:
    expected = session.last.text if session.last else ""
    text = found.text if found else ""
    return (
        f"task {session.task.id}: not restored after its worker was replaced, because the engine "
        f"is not deterministic: {len(session.actions)} actions led to {expected[:80]!r} before "
        f"and to {text[:80]!r} in the replay"
    )
