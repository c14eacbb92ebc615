"""The eight games: their generation parameters with the engine's defaults, and ours beside them.

Read by `engine.py`; the names are the engine's own, so its documentation applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dreamgym.envs.spec import EnvSpec, Scalar, read_params
from dreamgym.errors import ConfigError, did_you_mean

GENERATION: Mapping[str, Mapping[str, Scalar]] = MappingProxyType(
    {
        "cookingworld": {
            "numLocations": 11,
            "numIngredients": 3,
            "numDistractorItems": 10,
            "includeDoors": True,
            "limitInventorySize": True,
        },
        "twc": {
            "numLocations": 3,
            "numItemsToPutAway": 4,
            "includeDoors": False,
            "limitInventorySize": False,
        },
        "coin": {
            "numLocations": 11,
            "numDistractorItems": 0,
            "includeDoors": True,
            "limitInventorySize": True,
        },
        "mapreader": {
            "numLocations": 15,
            "maxDistanceApart": 4,
            "maxDistractorItemsPerLocation": 3,
            "includeDoors": False,
            "limitInventorySize": False,
        },
        "arithmetic": {},
        "sorting": {},
        "simonsays": {
            "gameLength": 5,
            "numDistractors": 3,
            "memorization": False,
            "verbose": False,
        },
        "peckingorder": {},
    }
)
"""What each game can be made of."""

MAX_STEPS: Mapping[str, int] = MappingProxyType(
    {
        "cookingworld": 80,
        "twc": 40,
        "coin": 50,
        "mapreader": 40,
        "arithmetic": 20,
        "sorting": 30,
        "simonsays": 20,
        "peckingorder": 30,
    }
)
"""Steps after which an episode is cut off: about twice the longest path of the expert."""

FOLDS_APART = frozenset({"arithmetic", "sorting", "simonsays", "peckingorder"})
"""Games whose engine folds share no object, and whose first states always show one."""

MAP_ROOMS = 48
"""MapReader says it can make 50 rooms, and breaks above this many."""

OURS: Mapping[str, Scalar] = MappingProxyType(
    {"train": 1000, "dev": 200, "test": 200, "holdout": "start", "fold": "own"}
)
"""What we add: see `splits.py`."""


@dataclass(frozen=True, slots=True)
class GameSettings:
    """Everything a spec says about a game."""

    game: str
    generation: tuple[tuple[str, Scalar], ...]
    max_steps: int
    counts: Mapping[str, int]
    """How many tasks each split may have."""
    holdout: str
    fold: str

    @property
    def engine_params(self) -> str:
        """The generation parameters as the engine reads them."""
        return ",".join(f"{name}={int(value)}" for name, value in self.generation)

    @property
    def folds_apart(self) -> bool:
        """Whether no first state can be in two splits, since their folds share no word for it."""
        return self.fold == "own" and self.game in FOLDS_APART


def read_settings(spec: EnvSpec) -> GameSettings:
    """Read a spec. Raises `ConfigError` for what is unknown or out of range."""
    if spec.name not in GENERATION:
        hint = did_you_mean(spec.name, GENERATION)
        raise ConfigError(f"unknown TextWorldExpress game '{spec.name}'.{hint}")
    own = GENERATION[spec.name]
    values = read_params(spec, {**own, "maxSteps": 0, **OURS})
    if "maxSteps" not in dict(spec.params):
        # Simon's game is as long as it is told to be.
        values["maxSteps"] = max(MAX_STEPS[spec.name], 2 * int(values.get("gameLength", 0)))
    for name in ("maxSteps", "train", "dev", "test"):
        low = 1 if name == "maxSteps" else 0
        if not low <= int(values[name]) <= 10_000:
            raise ConfigError(f"{spec}: {name} is {values[name]}; it must be {low} to 10000")
    if spec.name == "mapreader" and int(values["numLocations"]) > MAP_ROOMS:
        raise ConfigError(f"{spec}: the engine has names for {MAP_ROOMS} rooms only")
    _one_of(spec, values, "holdout", ("start", "seed"))
    _one_of(spec, values, "fold", ("own", "train", "dev", "test"))
    return GameSettings(
        game=spec.name,
        generation=tuple((name, values[name]) for name in own),
        max_steps=int(values["maxSteps"]),
        counts={split: int(values[split]) for split in ("train", "dev", "test")},
        holdout=str(values["holdout"]),
        fold=str(values["fold"]),
    )


def place_of(spec: EnvSpec) -> str:
    """Name the place that a spec's tasks start in: what cannot change a start is left out."""
    own = GENERATION[spec.name]
    values = read_settings(spec).generation
    changed = tuple((name, f"{int(value)}") for name, value in values if value != own[name])
    return str(EnvSpec(spec.family, spec.name, changed))


def _one_of(spec: EnvSpec, values: Mapping[str, Scalar], name: str, known: tuple[str, ...]) -> None:
    if values[name] not in known:
        hint = did_you_mean(str(values[name]), known)
        raise ConfigError(f"{spec}: unknown {name} '{values[name]}'.{hint}")
