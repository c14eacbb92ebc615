"""DreamGym: train language-model agents inside synthesised environments.

The names below are the public API; each is loaded on first use, so importing this is instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {
    "Action": "types",
    "Agent": "protocols",
    "ConfigError": "errors",
    "DreamGymError": "errors",
    "Embedder": "protocols",
    "Engine": "protocols",
    "Env": "protocols",
    "EnvError": "errors",
    "EnvSpec": "envs.spec",
    "ExperienceStore": "replay",
    "Game": "protocols",
    "LLM": "protocols",
    "Observation": "types",
    "Opening": "types",
    "Provenance": "types",
    "RealWorld": "envs.world",
    "Source": "types",
    "Split": "types",
    "Step": "types",
    "StepResult": "types",
    "StopReason": "types",
    "Task": "types",
    "Trajectory": "types",
    "Transition": "types",
    "World": "protocols",
    "check_env": "envs.check",
    "collect": "rollout.collect",
    "load_config": "config",
    "make_behaviour": "agents",
    "make_engine": "envs.registry",
    "measure_overlap": "envs.overlap",
    "open_store": "replay",
    "open_world": "envs.world",
    "plan_slots": "rollout.collect",
    "run_episode": "rollout.episode",
}

__all__ = ["__version__", *_PLACES]

if TYPE_CHECKING:
    # `as` makes them public for type checkers, too.
    from dreamgym.agents import make_behaviour as make_behaviour
    from dreamgym.config import load_config as load_config
    from dreamgym.envs.check import check_env as check_env
    from dreamgym.envs.overlap import measure_overlap as measure_overlap
    from dreamgym.envs.registry import make_engine as make_engine
    from dreamgym.envs.spec import EnvSpec as EnvSpec
    from dreamgym.envs.world import RealWorld as RealWorld
    from dreamgym.envs.world import open_world as open_world
    from dreamgym.errors import ConfigError as ConfigError
    from dreamgym.errors import DreamGymError as DreamGymError
    from dreamgym.errors import EnvError as EnvError
    from dreamgym.protocols import LLM as LLM
    from dreamgym.protocols import Agent as Agent
    from dreamgym.protocols import Embedder as Embedder
    from dreamgym.protocols import Engine as Engine
    from dreamgym.protocols import Env as Env
    from dreamgym.protocols import Game as Game
    from dreamgym.protocols import World as World
    from dreamgym.replay import ExperienceStore as ExperienceStore
    from dreamgym.replay import open_store as open_store
    from dreamgym.rollout.collect import collect as collect
    from dreamgym.rollout.collect import plan_slots as plan_slots
    from dreamgym.rollout.episode import run_episode as run_episode
    from dreamgym.types import Action as Action
    from dreamgym.types import Observation as Observation
    from dreamgym.types import Opening as Opening
    from dreamgym.types import Provenance as Provenance
    from dreamgym.types import Source as Source
    from dreamgym.types import Split as Split
    from dreamgym.types import Step as Step
    from dreamgym.types import StepResult as StepResult
    from dreamgym.types import StopReason as StopReason
    from dreamgym.types import Task as Task
    from dreamgym.types import Trajectory as Trajectory
    from dreamgym.types import Transition as Transition


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'dreamgym' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dreamgym.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
