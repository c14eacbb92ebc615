"""The dream: a language model that plays the environment, and what keeps it honest."""

from dreamgym.experience.annotate import annotate_by_rule, explain, teach
from dreamgym.experience.grounding import Grounding, KnownKinds
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import StepQuery, Style, Switches
from dreamgym.experience.world import DreamEnv, DreamWorld, Pessimism

__all__ = [
    "DreamEnv",
    "DreamWorld",
    "ExperienceModel",
    "Grounding",
    "KnownKinds",
    "Pessimism",
    "StepQuery",
    "Style",
    "Switches",
    "annotate_by_rule",
    "explain",
    "teach",
]
