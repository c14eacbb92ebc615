"""The section on the curriculum: which tasks are practised, and how new ones are made."""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.errors import ConfigError, did_you_mean

VALUES = ("auto", "task", "cluster")
MAKERS = ("model", "records", "none")


@dataclass(frozen=True, slots=True)
class CurriculumConfig:
    """What is practised when learning by trial. Off, all tasks are drawn alike."""

    on: bool = False
    """Prefer tasks that are sometimes solved and sometimes not, and make new ones from them."""
    value: str = "auto"
    """What is compared (Eq. 7): the episodes of a task, or of a cluster of similar tasks; auto
    means cluster for ppo and task for all others."""
    clusters: int = 16
    """Clusters of similar tasks, at most."""
    unseen: float = 0.125
    """What a task is worth that nobody has tried; a value of 0.25 is the most there is."""
    half_life: float = 20.0
    """Steps after which half of a value is forgotten and counts as unseen, so that tasks return."""
    floor: float = 0.01
    """What every task is worth at least."""
    mastery_visits: int = 2
    """Visits in a row, all solved, after which a task is mastered."""
    rest: int = 20
    """Steps that a mastered task rests before it is checked again."""
    synthetic_share: float = 0.3
    """Lambda: the largest share of made-up tasks in a step. For real, there are none."""
    maker: str = "model"
    """Who makes new tasks in a dream: the experience model; records, other places on record to
    begin in, without any model; or none."""
    refill_every: int = 5
    """Steps between refills."""
    sources: int = 4
    """Tasks of the highest value that are varied in a refill."""
    variations: int = 1
    """New tasks asked for, of each of them."""
    examples: int = 3
    """Other tasks that the model is shown when it makes one."""
    temperature: float = 1.0
    """How freely it invents."""
    most_synthetic: int = 64
    """Made-up tasks that are kept for practice; beyond, those worth least go."""
    patience: int = 3
    """Refills in a row without a readable answer after which no more are tried."""
    feasible_visits: int = 3
    """Visits within which a made-up task must be solved once, or it is retired."""
    alike: float = 0.99
    """The cosine from which on two tasks count as one."""
    new_words: float = 0.2
    """The largest share of a made-up task's words, and of its labels, that nobody has heard of."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, known in (("value", VALUES), ("maker", MAKERS)):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"curriculum.{name} '{value}'.{did_you_mean(value, known)}")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                _refuse(name, getattr(self, name), "at least 1")
        for name in ("rest", "examples", "unseen", "temperature"):
            if getattr(self, name) < 0:
                _refuse(name, getattr(self, name), "at least 0")
        for name in ("half_life", "floor"):
            if not getattr(self, name) > 0:
                _refuse(name, getattr(self, name), "above 0")
        for name in ("synthetic_share", "alike", "new_words"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                _refuse(name, getattr(self, name), "between 0 and 1")


def _refuse(name: str, value: float, rule: str) -> None:
    raise ConfigError(f"curriculum.{name} is {value}; it must be {rule}")


_COUNTS = (
    "clusters", "mastery_visits", "refill_every", "sources", "variations", "most_synthetic",
    "patience", "feasible_visits",
)  # fmt: skip
