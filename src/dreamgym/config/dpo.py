"""The section on learning from preferences: won against lost episodes of the same task (DPO)."""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DpoConfig:
    """How a policy learns from pairs of recorded episodes. It starts from one that can speak."""

    pairs: int = 0
    """Pairs to learn from; 0 means as many as the store has, each lost episode in one of them."""
    steps: int = 40
    """Updates of the weights."""
    pairs_per_step: int = 16
    """Pairs of one update."""
    beta: float = 0.1
    """How strongly the policy is held to the one that it started from."""
    learning_rate: float = 1e-4
    """Its top; it stays there."""
    warmup_steps: int = 5
    """Updates over which it rises to its top."""
    held_out_share: float = 0.1
    """The share of the tasks whose pairs are kept back for the curve."""
    eval_every: int = 10
    """Updates between looks at the held-out pairs, and between checkpoints."""
    tokens_per_pass: int = 8192
    """What goes through the model at once: memory, not results, depends on it."""
    threads: int = 0
    """Threads of one update; 0 means one per core."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("steps", "pairs_per_step", "eval_every", "tokens_per_pass"):
            if getattr(self, name) < 1:
                raise ConfigError(f"dpo.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("pairs", "warmup_steps", "threads"):
            if getattr(self, name) < 0:
                raise ConfigError(f"dpo.{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("beta", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"dpo.{name} is {getattr(self, name)}; it must be above 0")
        if not 0.0 <= self.held_out_share < 1.0:
            raise ConfigError(f"dpo.held_out_share is {self.held_out_share}; it is a share below 1")
