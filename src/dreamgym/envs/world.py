"""The real world: `open_world(spec)` and the episodes in it, safe and asynchronous.

Engines live in worker processes (`workers.py`); here are only the rules that hold for every engine:
a task belongs to its world, an episode is reset before it is stepped and not stepped after its end.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from types import TracebackType

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.worker import Session
from dreamgym.envs.workers import PoolStats, WorkerPool
from dreamgym.errors import ConfigError, EnvError
from dreamgym.protocols import Retriever
from dreamgym.types import Opening, Source, Split, StepResult, Task

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorldInfo:
    """What goes into the provenance of every record made in a world."""

    spec: str
    version: str
    """Name and version of the engine."""
    mapper: str
    """Digest of the mapper from the engine's output to abstract states."""


def open_world(spec: str, *, workers: int | None = None, time_limit: float = 60.0) -> RealWorld:
    """Open the real environment that a spec names, such as `twx/coin?numLocations=6`.

    Nothing is started yet: the first call starts a worker process, and further ones as episodes
    are opened. Use the world inside one event loop and close it, or write `async with`.

    Args:
        spec: Family, name and parameters of the environment.
        workers: How many processes may run; as many as there are cores unless told.
        time_limit: Seconds that the engine may take for one call before it counts as hung.
    """
    return RealWorld(str(parse_spec(spec)), workers=workers, time_limit=time_limit)


class RealWorld:
    """A world whose answers come from a real engine. Made by `open_world`."""

    def __init__(self, spec: str, *, workers: int | None, time_limit: float) -> None:
        self._spec = spec
        self._pool = WorkerPool(spec, workers=workers, time_limit=time_limit)

    @property
    def spec(self) -> str:
        """The canonical name that opens this world again."""
        return self._spec

    @property
    def source(self) -> Source:
        """Real, always."""
        return Source.REAL

    async def info(self) -> WorldInfo:
        """Return the engine's version and its mapper's digest; starts a worker if none runs."""
        version, mapper = await self._pool.identity()
        return WorldInfo(self._spec, version, mapper)

    async def tasks(self, split: Split) -> tuple[Task, ...]:
        """List the tasks of a split."""
        listed: tuple[Task, ...] = await self._pool.ask("tasks", split)
        return listed

    async def entities(self, opening: Opening) -> frozenset[str]:
        """Name the things that an opening mentions."""
        named: frozenset[str] = await self._pool.ask("entities", opening)
        return named

    async def open(self, task: Task, memory: Retriever | None = None) -> RealEnv:
        """Open an episode of the task. Reality needs no `memory`; a dream would look things up."""
        if task.env != self._spec:
            raise ConfigError(
                f"task {task.id} belongs to '{task.env}', this world is '{self._spec}'; "
                "open the world that the task names"
            )
        if task.source is not Source.REAL:
            raise ConfigError(f"task {task.id} was made up by a model; no real engine has it")
        return RealEnv(self._pool, await self._pool.open(task))

    def stats(self) -> PoolStats:
        """Return what the workers did so far."""
        return self._pool.stats()

    async def close(self) -> None:
        """End every worker process."""
        await self._pool.close()

    async def __aenter__(self) -> RealWorld:
        """Return the world itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the world."""
        await self.close()


class RealEnv:
    """One episode in a real engine. Made by `RealWorld.open`."""

    def __init__(self, pool: WorkerPool, session: Session) -> None:
        self._pool = pool
        self._session = session
        self._closed = False

    async def reset(self, seed: int) -> Opening:
        """Start the episode (again). The same seed gives the same episode."""
        self._check_open("reset")
        opening: Opening = await self._pool.play(self._session, "reset", seed)
        asked = self._session.task
        if replace(opening.task, goal=asked.goal) != asked:
            raise EnvError(f"env.reset: {asked} was opened, the engine began {opening.task}")
        return opening

    async def step(self, action: str) -> StepResult:
        """Answer one action. Raises `EnvError` when the engine broke, or the episode is not on."""
        self._check_running("step")
        result: StepResult = await self._pool.play(self._session, "step", action)
        return result

    async def expert(self) -> tuple[str, ...]:
        """Return actions that win from here, or nothing where the engine does not know."""
        self._check_running("expert")
        actions: tuple[str, ...] = await self._pool.play(self._session, "expert")
        return actions

    async def close(self) -> None:
        """End the episode. Never raises `EnvError`: nothing more is wanted from the engine."""
        if not self._closed:
            self._closed = True
            try:
                await self._pool.close_session(self._session)
            except EnvError as error:
                logger.warning("closing an episode of task %s: %s", self._session.task.id, error)

    def _check_open(self, operation: str) -> None:
        if self._closed:
            raise EnvError(f"env.{operation}: the episode of {self._session.task.id} was closed")

    def _check_running(self, operation: str) -> None:
        self._check_open(operation)
        session = self._session
        if session.seed is None and session.failure is None:
            raise EnvError(f"env.{operation}: task {session.task.id} must be reset first")
        if session.ended:
            turns = len(session.actions)
            raise EnvError(
                f"env.{operation}: the episode of {session.task.id} ended after {turns} steps; "
                "reset it to play again"
            )
