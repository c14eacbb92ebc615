"""Names to engines: the families that ship with DreamGym and those that plugins bring.

A family is a function `make_engine(spec: EnvSpec) -> Engine`. Ours are loaded on first use; others
announce themselves under the entry point group `dreamgym.envs`. Nothing is imported by listing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from dreamgym.envs.spec import EnvSpec, parse_spec
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.protocols import Engine

EngineFactory = Callable[[EnvSpec], Engine]

FAMILIES: dict[str, str] = {
    "twx": "dreamgym.envs.textworld_express.engine:make_engine",
    "textworld": "dreamgym.envs.textworld.engine:make_engine",
    "alfworld": "dreamgym.envs.alfworld.engine:make_engine",
    "gym": "dreamgym.envs.gym.engine:make_engine",
    "py": "dreamgym.envs.own:make_engine",
}
"""What ships: family name -> module:function."""


def families() -> dict[str, str]:
    """Return every known family, shipped or plugged in, with the place it loads from."""
    plugged = {point.name: point.value for point in entry_points(group="dreamgym.envs")}
    return plugged | FAMILIES


def make_engine(text: str) -> Engine:
    """Make the engine a spec names. Raises `ConfigError` or `MissingDependency` with the fix."""
    spec = parse_spec(text)
    # To look for plugins takes longer than to start most engines.
    known = FAMILIES if spec.family in FAMILIES else families()
    if spec.family not in known:
        hint = did_you_mean(spec.family, known)
        raise ConfigError(f"unknown environment family '{spec.family}'.{hint}")
    module, _, function = known[spec.family].partition(":")
    factory = cast(EngineFactory, getattr(importlib.import_module(module), function))
    return factory(spec)
