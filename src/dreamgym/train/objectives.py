"""What an update makes smaller: the surrogate, the distance to demonstrations, preferences.

Objects of one kind, `Objective`, for the one updater of `update.py`. Each says how the tokens of a
minibatch are weighed and what the loss of a pass is; passes of a minibatch add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dreamgym.errors import ConfigError
from dreamgym.models.requirement import torch
from dreamgym.train.batch import TokenBatch
from dreamgym.train.losses import (
    Aggregation,
    Clip,
    KlEstimator,
    kl_estimate,
    policy_loss,
    preference_loss,
    token_weights,
    value_loss,
)
from dreamgym.train.readout import Readout


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a pass, and figures about it."""

    total: torch.Tensor
    """Add to the minibatch's."""
    losses: dict[str, torch.Tensor]
    """Shares of the minibatch's losses: they add up over its passes."""
    counts: dict[str, torch.Tensor]
    """Sums over items (tokens or pairs): divided by the items they are means."""
    items: int


class Objective(Protocol):
    """Something to make smaller."""

    @property
    def entropy_gradient(self) -> bool:
        """Whether the loss has the entropy in it."""

    @property
    def in_pairs(self) -> bool:
        """Whether a unit's rows have to go through the model together."""

    def weigh(self, counts: Sequence[int]) -> list[float]:
        """Return the weight of a token of each unit, from the units' action tokens."""

    def loss(self, said: Readout, batch: TokenBatch) -> Loss:
        """Return the loss of a pass."""


@dataclass(frozen=True, slots=True)
class PolicyObjective:
    """Clipped surrogate, distance to a reference, entropy, and the critic's error if any."""

    clip: Clip = field(default_factory=Clip)
    aggregation: Aggregation = "token-mean"
    horizon: int = 1
    """For `seq-mean-token-sum-norm`: the most action tokens of an episode, say."""
    kl_coefficient: float = 0.0
    kl_estimator: KlEstimator = "k3"
    entropy_coefficient: float = 0.0
    value_coefficient: float = 0.5
    value_clip: float | None = 0.2

    def __post_init__(self) -> None:
        """Refuse settings that would silently do nothing."""
        token_weights([1], self.aggregation)
        kl_estimate(torch.zeros(1), torch.zeros(1), self.kl_estimator)
        if self.aggregation == "seq-mean-token-sum-norm" and self.horizon < 2:
            raise ConfigError(
                f"{self.aggregation} divides by a constant: set horizon to the most action tokens "
                "that an episode may have"
            )
        if self.kl_estimator == "k1" and self.kl_coefficient:
            raise ConfigError(
                "the estimator k1 has, as a loss, a gradient that is 0 on average: "
                "it would hold nothing back. Use k2 or k3."
            )

    @property
    def entropy_gradient(self) -> bool:
        """Whether the loss has the entropy in it."""
        return self.entropy_coefficient != 0

    @property
    def in_pairs(self) -> bool:
        """Tokens are judged one by one."""
        return False

    def weigh(self, counts: Sequence[int]) -> list[float]:
        """Weigh tokens as `aggregation` says."""
        return token_weights(counts, self.aggregation, horizon=self.horizon)

    def loss(self, said: Readout, batch: TokenBatch) -> Loss:
        """Return the loss of a pass."""
        old, advantages, weights = _there(batch.old_N), _there(batch.advantages_N), batch.weights_N
        surrogate = policy_loss(said.logprobs_N, old, advantages_N=advantages, clip=self.clip)
        losses = {"actor/pg_loss": (weights * surrogate.losses_N).sum()}
        total = losses["actor/pg_loss"]
        moved = kl_estimate(old, said.logprobs_N.detach(), "k3")
        counts = {
            "actor/entropy": said.entropies_N,
            "actor/ppo_kl": moved,
            "actor/clip_frac": surrogate.clipped_N,
            "actor/clip_frac_lower": surrogate.bounded_N,
            "actor/ratio": surrogate.ratios_N,
        }
        if self.entropy_coefficient:
            total = total - self.entropy_coefficient * (weights * said.entropies_N).sum()
        if batch.reference_N is not None:
            apart = kl_estimate(said.logprobs_N, batch.reference_N, self.kl_estimator)
            losses["actor/kl_loss"] = (weights * apart).sum()
            counts["actor/kl"] = apart
            total = total + self.kl_coefficient * losses["actor/kl_loss"]
        if said.values_N is not None and batch.returns_N is not None:
            errors, clipped = value_loss(
                said.values_N,
                batch.returns_N,
                old_N=_there(batch.values_N),
                clip=self.value_clip,
            )
            losses["critic/vf_loss"] = (weights * errors).sum()
            counts["critic/vf_clip_frac"] = clipped
            total = total + self.value_coefficient * losses["critic/vf_loss"]
        return Loss(total, _shown(losses), _sums(counts), batch.tokens)


@dataclass(frozen=True, slots=True)
class CloningObjective:
    """Say what was demonstrated (behaviour cloning, SFT): the mean -log p of action tokens."""

    aggregation: Aggregation = "token-mean"

    @property
    def entropy_gradient(self) -> bool:
        """The loss has no entropy in it."""
        return False

    @property
    def in_pairs(self) -> bool:
        """Tokens are judged one by one."""
        return False

    def weigh(self, counts: Sequence[int]) -> list[float]:
        """Weigh tokens as `aggregation` says."""
        return token_weights(counts, self.aggregation)

    def loss(self, said: Readout, batch: TokenBatch) -> Loss:
        """Return the loss of a pass."""
        total = -(batch.weights_N * said.logprobs_N).sum()
        counts = {"actor/entropy": said.entropies_N}
        return Loss(total, _shown({"sft/loss": total}), _sums(counts), batch.tokens)


@dataclass(frozen=True, slots=True)
class PreferenceObjective:
    """Make the better episode of a pair likelier than the worse, against a reference (DPO)."""

    beta: float = 0.1

    @property
    def entropy_gradient(self) -> bool:
        """The loss has no entropy in it."""
        return False

    @property
    def in_pairs(self) -> bool:
        """A pair's loss is of both its episodes."""
        return True

    def weigh(self, counts: Sequence[int]) -> list[float]:
        """Weigh all pairs alike."""
        return [1 / max(1, len(counts)) for _ in counts]

    def loss(self, said: Readout, batch: TokenBatch) -> Loss:
        """Return the loss of a pass."""
        gains = batch.signs_R[batch.rows_N] * (said.logprobs_N - _there(batch.reference_N))
        pairs = int(batch.units_R.max()) + 1
        margins = gains.new_zeros(pairs).index_add(0, batch.units_R[batch.rows_N], gains)
        weights = margins.new_zeros(pairs).index_copy(0, batch.units_R, batch.weights_R)
        total = (weights * preference_loss(margins, beta=self.beta)).sum()
        counts = {"dpo/accuracy": margins > 0, "dpo/margin": self.beta * margins}
        return Loss(total, _shown({"dpo/loss": total}), _sums(counts), pairs)


def _there(column: torch.Tensor | None) -> torch.Tensor:
    if column is None:
        raise ValueError("a column that the objective needs is not in the batch")
    return column


def _shown(losses: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: loss.detach() for name, loss in losses.items()}


def _sums(columns: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: column.detach().double().sum() for name, column in columns.items()}
