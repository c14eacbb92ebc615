"""Typed settings: frozen dataclasses, TOML presets, `--set a.b=c`. Standard library only.

Config stops at `build.py`: no other part of the system sees these classes.
"""

from dreamgym.config.load import dump_toml, load_config, preset_names
from dreamgym.config.run import CollectConfig, EnvConfig, EvalConfig, ReplayConfig, RunConfig

__all__ = [
    "CollectConfig",
    "EnvConfig",
    "EvalConfig",
    "ReplayConfig",
    "RunConfig",
    "dump_toml",
    "load_config",
    "preset_names",
]
