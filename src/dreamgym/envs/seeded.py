"""Engines whose tasks are seeds: all that an author of an environment need not write.

A split is a range of seeds, far from the others', so a split can grow without taking another's.
Give `SeededEngine` the function that makes a game of a task, and it is an `Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from dreamgym.envs.spec import EnvSpec, Scalar, read_params
from dreamgym.errors import ConfigError
from dreamgym.protocols import Game
from dreamgym.types import Opening, Split, Task

FIRST_SEED = MappingProxyType({Split.TRAIN: 0, Split.DEV: 10_000_000, Split.TEST: 20_000_000})
LARGEST_SPLIT = 10_000_000
COUNTS = MappingProxyType({Split.TRAIN: 1000, Split.DEV: 100, Split.TEST: 100})
"""How many tasks a split has unless told."""
NO_PARAMS: Mapping[str, Scalar] = MappingProxyType({})
"""Of an engine that has nothing to set."""


def seeded_tasks(spec: str, split: Split, *, count: int) -> tuple[Task, ...]:
    """Return a task for each seed of a split; its key is the seed."""
    if not 0 <= count <= LARGEST_SPLIT:
        raise ConfigError(f"{spec}: {split}={count} is not between 0 and {LARGEST_SPLIT}")
    seeds = range(FIRST_SEED[split], FIRST_SEED[split] + count)
    return tuple(Task(f"{spec}#{seed}", spec, str(seed), split) for seed in seeds)


def read_seed(task: Task) -> int:
    """Return the seed that a task stands for. Raises `ConfigError` for a key that is none."""
    key = task.key
    first = FIRST_SEED[task.split]
    if not key.isdecimal() or not first <= int(key) < first + LARGEST_SPLIT:
        raise ConfigError(f"task {task.id}: '{key}' is no seed of the {task.split} split")
    return int(key)


class SeededEngine:
    """An engine made of a function that makes games."""

    def __init__(
        self,
        spec: EnvSpec,
        play: Callable[[Task, int], Game],
        *,
        version: str,
        mapper: str = "as-is",
        entities: Callable[[Opening], Iterable[str]] = lambda opening: (),
        counts: Mapping[Split, int] = COUNTS,
        params: Mapping[str, Scalar] = NO_PARAMS,
    ) -> None:
        """Keep what an engine needs to know.

        Args:
            spec: What the engine was asked for.
            play: Makes the game of a task, given the task and its seed.
            version: Name and version of the environment, as it goes into every record.
            mapper: Changes whenever the same state would be told in other words.
            entities: Names the things that an opening mentions, to measure what splits share.
            counts: How many tasks each split has.
            params: What `read_params` read of the spec. A spec that has others is refused.
        """
        read_params(spec, params)
        self._spec = str(spec)
        self._play = play
        self._version = version
        self._mapper = mapper
        self._entities = entities
        self._counts = counts

    @property
    def version(self) -> str:
        """Name and version of the environment."""
        return self._version

    @property
    def mapper(self) -> str:
        """Digest of the way states are told."""
        return self._mapper

    def tasks(self, split: Split) -> Sequence[Task]:
        """List the tasks of a split."""
        return seeded_tasks(self._spec, split, count=self._counts[split])

    def open(self, task: Task) -> Game:
        """Make a game of the task."""
        return self._play(task, read_seed(task))

    def entities(self, opening: Opening) -> frozenset[str]:
        """Name the things that an opening mentions."""
        return frozenset(self._entities(opening))

    def close(self) -> None:
        """Nothing is held besides the games."""
