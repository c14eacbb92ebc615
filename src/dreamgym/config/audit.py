"""The section on the audit: what is measured, and what a dream must reach."""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import Split


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """How a dream is compared with reality, and when one may train in it."""

    world: str = ""
    """The dream: the run of a fit; or `llm` (the model of `[llm]`), `smollm2`, or a model folder,
    each remembering with `replay.store`."""
    data: str = ""
    """Held-out real trajectories: an experience store, or the run directory that holds one."""
    env: str = ""
    """The real environment; empty means the one that the dream was fitted on."""
    split: str = "dev"
    """Which recorded trajectories, and which tasks policies play: train, dev or test."""
    episodes: int = 100
    """Recorded episodes that are looked at."""
    policies: str = ""
    """Who plays, separated by commas: model folders, `module:function`, or shipped policies."""
    policy_episodes: int = 100
    """Episodes of each policy, each task once."""
    max_steps: int = 50
    """Steps after which an episode of a policy is cut off."""
    luck_episodes: int = 16
    """Episodes that are told again and again; 0 leaves luck out."""
    luck_repeats: int = 3
    """How often each of them is told."""
    judge: int = 0
    """Steps that the language model of `[llm]` judges by four criteria; 0 means none."""
    gamma: float = 0.95
    """The discount of the paper's bounds."""
    delta: float = 0.01
    """The trust region of one update in the paper's bounds."""
    concurrency: int = 128
    """Questions to the dream that are under way at once."""
    min_precision: float = 0.9
    """Gate: the share of on-policy successes in the dream that are real."""
    min_wins: int = 5
    """Gate: on-policy successes in the dream that this share must be based on."""
    max_gap: float = 0.1
    """Gate: on-policy success in the dream minus real success, either way."""
    max_false_success: float = 0.02
    """Gate: one-step share of steps without success that succeed in the dream."""
    min_refused: float = 0.97
    """Gate: one-step share of invalid actions that the dream refuses."""
    min_agreement: float = 0.9
    """Gate: closed-loop share of episodes with the same outcome."""
    max_unknown: float = 0.5
    """Gate: share of episodes that end as unknown."""
    max_failed: float = 0.2
    """Gate: share of episodes that break."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.split not in list(Split):
            raise ConfigError(f"audit.split '{self.split}'.{did_you_mean(self.split, Split)}")
        for name in ("episodes", "policy_episodes", "max_steps", "concurrency"):
            if getattr(self, name) < 1:
                raise ConfigError(f"audit.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("luck_episodes", "luck_repeats", "judge", "min_wins"):
            if getattr(self, name) < 0:
                raise ConfigError(f"audit.{name} is {getattr(self, name)}; it must be at least 0")
        shares = ("min_precision", "max_gap", "max_false_success", "min_refused", "min_agreement")
        for name in (*shares, "max_unknown", "max_failed"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"audit.{name} is {getattr(self, name)}; it is a share")
        if not 0.0 < self.gamma < 1.0:
            raise ConfigError(f"audit.gamma is {self.gamma}; it lies between 0 and 1")
        if self.delta < 0:
            raise ConfigError(f"audit.delta is {self.delta}; it must be at least 0")
