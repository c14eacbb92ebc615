"""The system on one page: what each kind of part promises to the others.

Only behaviour is declared here; values live in `types.py`. Implementations satisfy a protocol by
shape, never by inheritance, so no package needs to see another to be used by it.

Two halves. *Authors* of an environment write an `Engine` and its `Game`s: plain synchronous code
that may be slow, may crash, may hang. The *system* sees a `World` and its `Env`s: asynchronous,
batched, safe. `envs.workers` stands between them and runs engines in processes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from dreamgym.types import (
    Action,
    Completion,
    Observation,
    Opening,
    Request,
    Source,
    Split,
    Step,
    StepResult,
    Task,
    Transition,
)

if TYPE_CHECKING:
    # A worker process that holds an engine needs these protocols but no NumPy, and starts faster.
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    """One row per text, each of length one."""
else:
    Vectors = object


@runtime_checkable
class Game(Protocol):
    """One episode inside an engine. Written by environment authors; synchronous."""

    def reset(self, seed: int) -> Opening:
        """Start (again) from the task's first state. The same seed gives the same episode."""

    def step(self, action: str) -> StepResult:
        """Carry out one action, or answer as the engine answers what it refuses."""

    def expert(self) -> tuple[str, ...]:
        """Return actions that win from here, or nothing where the engine has no such knowledge."""

    def close(self) -> None:
        """Let go of what the episode holds."""


@runtime_checkable
class Engine(Protocol):
    """A real environment. Lives in a worker process and may hold many games at once."""

    @property
    def version(self) -> str:
        """Name and version of the engine, as it goes into every record."""

    @property
    def mapper(self) -> str:
        """Digest of the mapper from the engine's output to abstract states."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """List the tasks of a split: always the same, always in the same order."""

    def open(self, task: Task) -> Game:
        """Make a game of the task. It is reset before its first step."""

    def entities(self, opening: Opening) -> frozenset[str]:
        """Name the things that an opening mentions, to measure what two splits share."""

    def close(self) -> None:
        """Stop the engine."""


class Env(Protocol):
    """One episode as the system sees it: in a real engine or in a dream."""

    async def reset(self, seed: int) -> Opening:
        """Start the episode."""

    async def step(self, action: str) -> StepResult:
        """Answer one action. Raises `EnvError` when broken; never invents a reward."""

    async def expert(self) -> tuple[str, ...]:
        """Return actions that win from here, or nothing where none are known (as in a dream)."""

    async def close(self) -> None:
        """End the episode."""


class World(Protocol):
    """A place to open episodes in. Sim-to-real is the swap of one world for another."""

    @property
    def spec(self) -> str:
        """The canonical name that opens this world again."""

    @property
    def source(self) -> Source:
        """Whether what happens here is real."""

    async def open(self, task: Task, memory: Retriever | None = None) -> Env:
        """Open an episode of the task. A dream looks similar steps up in `memory`."""

    async def close(self) -> None:
        """Let go of everything."""


class Agent(Protocol):
    """Chooses actions."""

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Choose the next action, given the task, the turns so far and the current state."""


class LLM(Protocol):
    """A language model, wherever it runs. Batching, retries and limits are its own affair."""

    async def complete(self, request: Request) -> Completion:
        """Answer one request. Raises `LLMError`; never returns a made-up answer."""

    async def close(self) -> None:
        """Let go of connections and memory."""


class Embedder(Protocol):
    """Turns texts to vectors whose dot product says how alike they are."""

    @property
    def digest(self) -> str:
        """Changes whenever the same text may get another vector: guards stored indexes."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""


class Retriever(Protocol):
    """Finds the past steps most like the one at hand (the paper's Eq. 4)."""

    def search(
        self, state: str, action: str, *, k: int, exclude_trajectory: str | None = None
    ) -> tuple[Reference, ...]:
        """Return the k nearest transitions, nearest first, none of the excluded trajectory."""


@runtime_checkable
class TaskMemory(Protocol):
    """A retriever that also knows what is on record about a task."""

    def recall(
        self, task_id: str, *, exclude_trajectory: str | None = None
    ) -> tuple[Transition, ...]:
        """Return all real steps of the task, in the order of their recording."""


class Reference(Protocol):
    """A retrieved transition with its similarity."""

    @property
    def transition(self) -> Transition:
        """The past step."""

    @property
    def similarity(self) -> float:
        """Cosine of the two (state, action) vectors."""
