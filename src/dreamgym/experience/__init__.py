"""The dream: a language model that plays the environment, and what keeps it honest."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dreamgym.experience.annotate import annotate_by_rule, explain, teach
    from dreamgym.experience.doubt import Pessimism, SecondOpinion
    from dreamgym.experience.grounding import Grounding, KnownKinds
    from dreamgym.experience.model import ExperienceModel
    from dreamgym.experience.prompt import StepQuery, Style, Switches
    from dreamgym.experience.world import DreamEnv, DreamWorld

_HOMES = {
    "DreamEnv": "world",
    "DreamWorld": "world",
    "ExperienceModel": "model",
    "Grounding": "grounding",
    "KnownKinds": "grounding",
    "Pessimism": "doubt",
    "SecondOpinion": "doubt",
    "StepQuery": "prompt",
    "Style": "prompt",
    "Switches": "prompt",
    "annotate_by_rule": "annotate",
    "explain": "annotate",
    "teach": "annotate",
}
"""Names are imported when they are used, so that a command starts without them."""

__all__ = [
    "DreamEnv",
    "DreamWorld",
    "ExperienceModel",
    "Grounding",
    "KnownKinds",
    "Pessimism",
    "SecondOpinion",
    "StepQuery",
    "Style",
    "Switches",
    "annotate_by_rule",
    "explain",
    "teach",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
