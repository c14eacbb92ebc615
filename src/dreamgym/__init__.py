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
    from dreamgym.agents import make_behaviour
    from dreamgym.config import load_config
    from dreamgym.envs.check import check_env
    from dreamgym.envs.overlap import measure_overlap
    from dreamgym.envs.registry import make_engine
    from dreamgym.envs.spec import EnvSpec
    from dreamgym.envs.world import RealWorld, open_world
    from dreamgym.errors import ConfigError, DreamGymError, EnvError
    from dreamgym.protocols import LLM, Agent, Embedder, Engine, Env, Game, World
    from dreamgym.replay import ExperienceStore, open_store
    from dreamgym.rollout.collect import collect, plan_slots
    from dreamgym.rollout.episode import run_episode
    from dreamgym.types import (
        Action,
        Observation,
        Opening,
        Provenance,
        Source,
        Split,
        Step,
        StepResult,
        StopReason,
        Task,
        Trajectory,
        Transition,
    )


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'dreamgym' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dreamgym.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
