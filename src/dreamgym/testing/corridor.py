"""A corridor of rooms with a coin at one end: the smallest world that can be won, lost and broken.

It runs in the caller's process, answers at once and breaks on demand, which makes it the right
thing to test rollouts with. Real environments live in `envs`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

from dreamgym.errors import EnvError
from dreamgym.protocols import Retriever
from dreamgym.types import Observation, Opening, Source, Split, StepResult, Task


class CorridorWorld:
    """Opens corridors. `breaks(task, step)` says when an episode fails with an `EnvError`."""

    def __init__(
        self, *, breaks: Callable[[Task, int], bool] = lambda task, step: False, jitter: float = 0.0
    ) -> None:
        self._breaks = breaks
        self._jitter = jitter
        self.open_now = 0
        self.most_open = 0

    spec = "corridor"
    source = Source.REAL

    def tasks(self, split: Split, count: int = 10) -> tuple[Task, ...]:
        """Return corridors of growing length."""
        return tuple(
            Task(id=f"corridor#{split}:{n}", env=self.spec, key=str(n), split=split)
            for n in range(count)
        )

    async def open(self, task: Task, memory: Retriever | None = None) -> CorridorEnv:
        """Open a corridor as long as the task's key says."""
        if self._breaks(task, -1):
            raise EnvError(f"{task.id} cannot be opened")
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        return CorridorEnv(task, self, breaks=self._breaks, jitter=self._jitter)

    async def close(self) -> None:
        """Nothing to let go of."""


class CorridorEnv:
    """One corridor: walk `east` to the end and `take coin`."""

    def __init__(
        self,
        task: Task,
        world: CorridorWorld,
        *,
        breaks: Callable[[Task, int], bool],
        jitter: float,
    ) -> None:
        self._task = task
        self._world = world
        self._breaks = breaks
        self._jitter = jitter
        self._rng = random.Random(task.id)
        self._length = int(task.key)
        self._place = 0
        self._steps = 0

    async def reset(self, seed: int) -> Opening:
        """Start at the western end."""
        self._place = self._steps = 0
        task = replace(self._task, goal=f"Take the coin in room {self._length}.")
        return Opening(task, self._look())

    async def step(self, action: str) -> StepResult:
        """Walk, take, or refuse."""
        await asyncio.sleep(self._rng.random() * self._jitter)
        if self._breaks(self._task, self._steps):
            raise EnvError(f"the corridor of {self._task.id} fell in")
        self._steps += 1
        if action not in (self._look().admissible or ()):
            return StepResult(self._look(), refused=True)
        if action == "take coin":
            done = Observation("You hold the coin.", admissible=())
            return StepResult(done, reward=1.0, terminated=True, success=True)
        self._place += 1 if action == "east" else -1
        return StepResult(self._look())

    async def expert(self) -> tuple[str, ...]:
        """Return the straight way."""
        return (*["east"] * (self._length - self._place), "take coin")

    async def close(self) -> None:
        """Leave the corridor."""
        self._world.open_now -= 1

    def _look(self) -> Observation:
        ways = ["west"] if self._place > 0 else []
        ways += ["east"] if self._place < self._length else ["take coin"]
        return Observation(f"Room {self._place} of {self._length}.", tuple(sorted(ways)))
