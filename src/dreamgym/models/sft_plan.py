"""How to fine-tune, how it goes and what came of it: the values of `sft.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.models.losses import SpanScore


@dataclass(frozen=True, slots=True)
class SftPlan:
    """How to train. The defaults suit the small models from scratch."""

    spans: Mapping[str, float] = field(default_factory=lambda: {"answer": 1.0})
    """Kinds of text to learn and their weights; the first is label 1 in the samples, and so on."""
    steps: int | None = None
    """Updates to make. Either this or `seconds`."""
    seconds: float | None = None
    """Time to spend; the learning rate falls with the clock."""
    tokens_per_step: int = 2400
    """The size of a batch, filler included."""
    tokens_per_pass: int = 8192
    """What goes through the model at once; larger batches are cut and their gradients added up."""
    learning_rate: float = 3e-3
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    """On matrices only."""
    warmup_steps: int = 30
    decay_share: float = 0.5
    """The last share of the budget, over which the learning rate falls to a fiftieth."""
    clip: float = 1.0
    """The longest gradient."""
    eval_every: int = 50
    patience: int | None = None
    """Stop after so many evaluations in a row without a new best."""
    checkpoint_every: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        if (self.steps is None) == (self.seconds is None):
            raise ConfigError("a plan has a budget of either steps or seconds")
        if not self.spans or any(weight < 0 for weight in self.spans.values()):
            raise ConfigError(
                f"spans {dict(self.spans)}: name at least one, with weights from 0 up"
            )
        for name in ("tokens_per_step", "tokens_per_pass", "eval_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One point of the curve on samples that are not trained on."""

    step: int
    loss: float
    """Mean loss of a token, weighted by kind."""
    spans: Mapping[str, SpanScore]


@dataclass(frozen=True, slots=True)
class SftProgress:
    """Where training stands, after every step."""

    step: int
    steps: int | None
    loss: float
    """Of this step, weighted."""
    spans: Mapping[str, SpanScore]
    """Of this step, kind by kind."""
    learning_rate: float
    tokens_per_second: float
    seconds_left: float
    held_out: HeldOut | None
    """The newest point of the curve, when this step made one."""


@dataclass(frozen=True, slots=True)
class SftResult:
    """What came of it. The model has the best weights by then."""

    steps: int
    tokens: int
    """Trained on, without filler."""
    padding: float
    """Share of what was computed that was filler."""
    seconds: float
    curve: tuple[HeldOut, ...]
    best_step: int
    stopped_early: bool


def rate_factor(plan: SftPlan, *, step: int, share: float) -> float:
    """Return the learning rate's share of its top: warm-up, plateau, then a straight fall."""
    warm = min(1.0, (step + 1) / max(1, plan.warmup_steps))
    left = (1 - min(1.0, share)) / plan.decay_share if plan.decay_share > 0 else 1.0
    return warm * max(0.02, min(1.0, left))


def comparable(plan: SftPlan) -> dict[str, Any]:
    """Return what must be the same for training to go on as it began."""
    content = {name: getattr(plan, name) for name in SftPlan.__dataclass_fields__}
    return {**content, "betas": list(plan.betas), "spans": dict(plan.spans)}


def check_same_plan(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse to go on under another plan."""
    changed = [name for name in new if old.get(name) != new[name]]
    if changed:
        listed = ", ".join(f"{name}: {old.get(name)} -> {new[name]}" for name in changed)
        raise ConfigError(f"this run began with another plan ({listed}). Use a new folder.")
