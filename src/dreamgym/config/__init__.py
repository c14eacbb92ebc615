"""Typed settings: frozen dataclasses, TOML presets, `--set a.b=c`. Standard library only.

Config stops at the commands, their jobs and what they build with (`build.py`, `dreams.py`): no part
below sees these classes.
"""

from dreamgym.config.audit import AuditConfig
from dreamgym.config.curriculum import CurriculumConfig
from dreamgym.config.dpo import DpoConfig
from dreamgym.config.dream import DreamConfig, FitConfig
from dreamgym.config.llm import MAY_CHANGE, AnnotateConfig, LlmConfig
from dreamgym.config.load import dump_toml, load_config, preset_names
from dreamgym.config.rl import RlConfig
from dreamgym.config.run import CollectConfig, EnvConfig, EvalConfig, ReplayConfig, RunConfig
from dreamgym.config.train import PolicyConfig, TrainConfig

__all__ = [
    "MAY_CHANGE",
    "AnnotateConfig",
    "AuditConfig",
    "CollectConfig",
    "CurriculumConfig",
    "DpoConfig",
    "DreamConfig",
    "EnvConfig",
    "EvalConfig",
    "FitConfig",
    "LlmConfig",
    "PolicyConfig",
    "ReplayConfig",
    "RlConfig",
    "RunConfig",
    "TrainConfig",
    "dump_toml",
    "load_config",
    "preset_names",
]
