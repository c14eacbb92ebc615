"""The loss of each action token, on flat tensors, and how tokens are weighed against one another.

Letters: N action tokens of a batch, in order of rows. No masks here: tokens that the model did not
write never come this far. A loss of a minibatch is the sum of its tokens' losses, each times its
weight; weights are made for the whole minibatch, so it does not matter in how many passes it is
computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.models.requirement import functional, torch

FURTHEST = 20.0
"""Logprobs are taken to differ by at most this much, so that no ratio is infinite."""

Aggregation = Literal[
    "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"
]
KlEstimator = Literal["k1", "k2", "k3"]


def token_weights(counts: Sequence[int], mode: Aggregation, *, horizon: int = 1) -> list[float]:
    """Return for each episode of a minibatch the weight of each of its action tokens.

    Args:
        counts: action tokens of each episode.
        mode: `token-mean` weighs all tokens alike (DAPO), `seq-mean-token-mean` all episodes, so
            that a token of a long one counts less (GRPO), `seq-mean-token-sum` all tokens alike but
            per episode, `seq-mean-token-sum-norm` that divided by a constant (Dr. GRPO).
        horizon: that constant, such as the most action tokens that an episode may have.
    """
    tokens = max(1, sum(counts))
    episodes = max(1, sum(1 for count in counts if count))
    match mode:
        case "token-mean":
            return [1 / tokens for _ in counts]
        case "seq-mean-token-mean":
            return [1 / (episodes * max(1, count)) for count in counts]
        case "seq-mean-token-sum":
            return [1 / episodes for _ in counts]
        case "seq-mean-token-sum-norm":
            return [1 / (episodes * horizon) for _ in counts]
        case _:
            raise ConfigError(
                f"no aggregation '{mode}'.{did_you_mean(mode, get_args(Aggregation))}"
            )


@dataclass(frozen=True, slots=True)
class Clip:
    """How far the policy may move from the one that played, before its gradient is cut off."""

    low: float = 0.2
    high: float = 0.2
    """Larger than `low` leaves rare tokens room to grow (clip-higher)."""
    dual: float | None = 3.0
    """Bounds the loss of a bad action that has become this many times likelier (dual clip)."""

    def __post_init__(self) -> None:
        """Refuse bounds that mean nothing."""
        if not (0 <= self.low <= 1 and self.high >= 0):
            raise ConfigError(
                f"clip {self.low} and {self.high}: low is within 0..1, high from 0 up"
            )
        if self.dual is not None and self.dual <= 1:
            raise ConfigError(f"dual clip {self.dual}: it is a ratio above 1, or none")


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The policy's loss, token by token."""

    losses_N: torch.Tensor
    ratios_N: torch.Tensor
    clipped_N: torch.Tensor
    """Where the clip took the gradient away."""
    bounded_N: torch.Tensor
    """Where the dual clip did."""


def policy_loss(
    logprobs_N: torch.Tensor, old_N: torch.Tensor, *, advantages_N: torch.Tensor, clip: Clip
) -> Surrogate:
    """Return the clipped surrogate: max(-A r, -A clip(r)), and for A < 0 no more than -A dual."""
    ratios = (logprobs_N - old_N).clamp(-FURTHEST, FURTHEST).exp()
    free = -advantages_N * ratios
    held = -advantages_N * ratios.clamp(1 - clip.low, 1 + clip.high)
    losses = torch.maximum(free, held)
    bounded = torch.zeros_like(losses, dtype=torch.bool)
    if clip.dual is not None:
        most = -advantages_N * clip.dual
        bounded = (advantages_N < 0) & (losses > most)
        losses = torch.where(bounded, most, losses)
    return Surrogate(losses, ratios.detach(), (held > free).detach(), bounded.detach())


def kl_estimate(
    logprobs_N: torch.Tensor, reference_N: torch.Tensor, estimator: KlEstimator
) -> torch.Tensor:
    """Return an estimate of KL(policy, reference) from each sampled token.

    With d = log policy - log reference: k1 is d, k2 is d^2 / 2, k3 is exp(-d) - 1 + d. The means of
    k1 and k3 are the KL; the mean *gradient* of k1 is 0 and that of k2 is the KL's.
    """
    apart = logprobs_N - reference_N
    match estimator:
        case "k1":
            return apart
        case "k2":
            return apart.square() / 2
        case "k3":
            apart = apart.clamp(-FURTHEST, FURTHEST)
            return torch.expm1(-apart) + apart
        case _:
            known = did_you_mean(estimator, get_args(KlEstimator))
            raise ConfigError(f"no KL estimator '{estimator}'.{known}")


def value_loss(
    values_N: torch.Tensor, returns_N: torch.Tensor, *, old_N: torch.Tensor, clip: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each token's value loss, and where the clip took the gradient away.

    Half the squared error, or that of the value held within `clip` of what it was, if larger.
    """
    free = (values_N - returns_N).square()
    if clip is None:
        return free / 2, torch.zeros_like(free, dtype=torch.bool)
    near = old_N + (values_N - old_N).clamp(-clip, clip)
    held = (near - returns_N).square()
    return torch.maximum(free, held) / 2, (held > free).detach()


def preference_loss(margins: torch.Tensor, *, beta: float) -> torch.Tensor:
    """Return DPO's loss of each pair: -log sigmoid(beta margin).

    A margin is log policy - log reference of the better episode, less the same of the worse.
    """
    return -functional.logsigmoid(beta * margins)
