"""What a `textworld/...` spec says: the kind of game, its difficulty, the sizes of the splits.

Only reading and checking; nothing here needs TextWorld itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dreamgym.envs.spec import EnvSpec, Scalar, read_params
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import Split, digest

GENERATION: Mapping[str, Mapping[str, Scalar]] = MappingProxyType(
    {
        "simple": {"rewards": "dense", "goal": "detailed"},
        "coin_collector": {"level": 5},
        "treasure_hunter": {"level": 5},
        "cooking": {
            "recipe": 1,
            "take": 1,
            "go": 1,
            "open": False,
            "cook": True,
            "cut": True,
            "drop": False,
        },
    }
)
"""What each kind of game can be made of, in TextWorld's own words, with our defaults."""

OURS: Mapping[str, Scalar] = MappingProxyType(
    {"maxSteps": 100, "train": 100, "dev": 20, "test": 20}
)
"""Parameters that every kind has: where an episode is cut off, and how many games a split has."""

FIRST_SEED: Mapping[Split, int] = MappingProxyType(
    {Split.TRAIN: 0, Split.DEV: 1_000_000, Split.TEST: 2_000_000}
)
"""Where the seeds of a split begin, so that no size of one split reaches into another."""

SPLIT_LIMIT = 1_000_000

GENERATOR_VERSION = 1
"""Raised when a recipe comes to mean another game, or its folder another content."""

GAME_FILE = "game.z8"
WALKTHROUGH_FILE = "walkthrough.json"
"""What lies in the folder named after a recipe (and `game.json`, which TextWorld itself reads)."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that determines one game: the same recipe gives the same game everywhere."""

    kind: str
    generation: tuple[tuple[str, Scalar], ...]
    split: Split
    """Some kinds draw the things of held-out games from a distribution of their own."""
    seed: int

    @property
    def name(self) -> str:
        """A file name of its own."""
        options = "&".join(f"{key}={value}" for key, value in self.generation)
        return f"{self.kind}-{self.split}-{self.seed}-{digest(options, size=4)}"


@dataclass(frozen=True, slots=True)
class GameSettings:
    """A spec, read and checked."""

    kind: str
    generation: tuple[tuple[str, Scalar], ...]
    max_steps: int
    counts: Mapping[Split, int]

    def recipe(self, split: Split, seed: int) -> Recipe:
        """Return what makes the game of a seed."""
        return Recipe(self.kind, self.generation, split, seed)

    def task_id(self, split: Split, seed: int) -> str:
        """Return an id that names every option, so that no changed default can change its game."""
        options = "&".join(f"{key}={_write(value)}" for key, value in self.generation)
        return f"textworld/{self.kind}?{options}#{split}-{seed}"


def read_settings(spec: EnvSpec) -> GameSettings:
    """Read a spec. Raises `ConfigError` for what TextWorld could not generate."""
    if spec.name not in GENERATION:
        raise ConfigError(
            f"no game '{spec.name}' in textworld.{did_you_mean(spec.name, GENERATION)}"
        )
    own = GENERATION[spec.name]
    values = read_params(spec, {**own, **OURS})
    _CHECKS[spec.name](spec, values)
    _check(spec, "maxSteps", values["maxSteps"], range(1, 1_000_001))
    counts = {}
    for split in Split:
        _check(spec, split.value, values[split.value], range(SPLIT_LIMIT + 1))
        counts[split] = int(values[split.value])
    generation = tuple(sorted((key, values[key]) for key in own))
    return GameSettings(spec.name, generation, int(values["maxSteps"]), MappingProxyType(counts))


def _write(value: Scalar) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _check(spec: EnvSpec, key: str, value: Scalar, allowed: range | tuple[Scalar, ...]) -> None:
    if value not in allowed:
        several = not isinstance(allowed, range)
        words = ", ".join(map(str, allowed)) if several else f"{allowed[0]} to {allowed[-1]}"
        raise ConfigError(f"{spec}: {key}={value}; it can be {words}")


def _check_simple(spec: EnvSpec, values: Mapping[str, Scalar]) -> None:
    _check(spec, "rewards", values["rewards"], ("dense", "balanced", "sparse"))
    _check(spec, "goal", values["goal"], ("detailed", "brief", "none"))


def _check_coin_collector(spec: EnvSpec, values: Mapping[str, Scalar]) -> None:
    _check(spec, "level", values["level"], range(1, 301))
    level = int(values["level"])
    rooms = ((level - 1) // 100 + 1) * ((level - 1) % 100 + 1)
    if rooms > 100:
        raise ConfigError(
            f"{spec}: level {level} means {rooms} rooms; TextWorld compiles up to 100"
        )


def _check_treasure_hunter(spec: EnvSpec, values: Mapping[str, Scalar]) -> None:
    _check(spec, "level", values["level"], range(1, 31))


def _check_cooking(spec: EnvSpec, values: Mapping[str, Scalar]) -> None:
    _check(spec, "recipe", values["recipe"], range(1, 6))
    _check(spec, "take", values["take"], range(int(values["recipe"]) + 1))
    _check(spec, "go", values["go"], (1, 6, 9, 12))


_CHECKS: dict[str, Callable[[EnvSpec, Mapping[str, Scalar]], None]] = {
    "simple": _check_simple,
    "coin_collector": _check_coin_collector,
    "treasure_hunter": _check_treasure_hunter,
    "cooking": _check_cooking,
}
