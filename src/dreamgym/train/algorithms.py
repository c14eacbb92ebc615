"""The algorithms: groups of episodes in, what each action token was worth out.

Small frozen objects of one kind, `Algorithm`; they differ in where the baseline comes from and in
nothing else. The loss, the updates and the models are the same for all: see `objectives.py` and
`update.py`. Failed episodes are seen by none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.train.advantages import (
    discounted_returns,
    explained_variance,
    gae,
    group_advantages,
    has_spread,
    leave_one_out,
    step_advantages,
    whiten,
)
from dreamgym.train.tokens import READ, Floats, TokenEpisode, TokenGroup

Values = Sequence[Sequence[Floats]]
"""For each group and each of its episodes, failed ones too: a critic's value before every action
token, and one more after the last token."""


@dataclass(frozen=True, slots=True)
class CreditedEpisode:
    """An episode with what each of its action tokens was worth."""

    episode: TokenEpisode
    advantages: Floats
    """One per action token, over all sequences."""
    returns: Floats | None = None
    """What a critic should have said before each token, where there is a critic."""
    values: Floats | None = None
    """What it did say."""


@dataclass(frozen=True, slots=True)
class Credit:
    """What is to be learnt from a set of groups."""

    episodes: tuple[CreditedEpisode, ...]
    metrics: Mapping[str, float]


class Algorithm(Protocol):
    """Says how much each action token was worth."""

    @property
    def needs_values(self) -> bool:
        """Whether `credit` has to be given a critic's values."""

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Judge the groups' episodes. Failed ones change nothing but their own count."""


@dataclass(frozen=True, slots=True)
class Grpo:
    """GRPO: an episode is worth what its return is above its group's mean."""

    scale: bool = True
    """Divide by the group's standard deviation; without, as Dr. GRPO."""
    invalid_penalty: float = 0.0
    """Taken off for each refused action."""
    penalise: Literal["return", "turn"] = "return"
    """Off the episode's return, before groups are compared, or off the refused turn's advantage."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        _check_penalty(self)

    @property
    def needs_values(self) -> bool:
        """GRPO has no critic."""
        return False

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Compare each episode with its group."""

        def judge(members: Sequence[TokenEpisode]) -> list[Floats] | None:
            return _whole_episodes(
                members, lambda returns: group_advantages(returns, scale=self.scale), penalty=self
            )

        return credit_by_group(groups, judge)


@dataclass(frozen=True, slots=True)
class Rloo:
    """RLOO: an episode is worth what its return is above the mean of the others."""

    invalid_penalty: float = 0.0
    penalise: Literal["return", "turn"] = "return"

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        _check_penalty(self)

    @property
    def needs_values(self) -> bool:
        """RLOO has no critic."""
        return False

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Compare each episode with the rest of its group."""
        return credit_by_group(
            groups, lambda members: _whole_episodes(members, leave_one_out, penalty=self)
        )


@dataclass(frozen=True, slots=True)
class Gigpo:
    """GiGPO: beside whole episodes, turns that acted in the same state are compared."""

    scale: bool = True
    gamma: float = 0.95
    """Discount from a turn to the next, for what followed a turn."""
    step_weight: float = 1.0
    """How much the comparison of turns counts beside that of episodes."""
    invalid_penalty: float = 0.0
    """Taken off the reward of each refused turn."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        _check_shares(gamma=self.gamma)

    @property
    def needs_values(self) -> bool:
        """GiGPO has no critic."""
        return False

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Compare episodes with episodes and turns with turns."""
        return credit_by_group(groups, self._judge)

    def _judge(self, members: Sequence[TokenEpisode]) -> list[Floats] | None:
        if any(not member.states for member in members):
            raise ConfigError("GiGPO compares turns by their states, but an episode has none")
        rewards = [member.turn_rewards(self.invalid_penalty) for member in members]
        whole = group_advantages(np.array([r.sum() for r in rewards]), scale=self.scale)
        ahead = [discounted_returns(r, gamma=self.gamma) for r in rewards]
        steps = step_advantages([m.states for m in members], ahead, scale=self.scale)
        found = [w + self.step_weight * s for w, s in zip(whole, steps, strict=True)]
        return found if any(part.any() for part in found) else None


@dataclass(frozen=True, slots=True)
class Ppo:
    """PPO: a token is worth what followed it above what a critic expected."""

    gamma: float = 1.0
    """Discount from a turn to the next."""
    lam: float = 0.95
    """From a turn to the next, how far to trust rewards over the critic: 1 is rewards alone."""
    token_gamma: float = 1.0
    """The same within a turn, where nothing happens: with 1 and 1 all tokens of a turn share what
    came of it."""
    token_lam: float = 1.0
    whiten: bool = True
    """Shift and scale all advantages to mean 0 and variance 1."""
    bootstrap: bool = False
    """Where a step limit ended an episode, go on with the critic's value instead of 0. Only right
    where the limit is not part of the task; the episode's last state must be in its tokens."""
    invalid_penalty: float = 0.0
    """Taken off the reward of each refused turn."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        _check_shares(
            gamma=self.gamma, lam=self.lam, token_gamma=self.token_gamma, token_lam=self.token_lam
        )

    @property
    def needs_values(self) -> bool:
        """PPO has a critic."""
        return True

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Follow each episode from its end, comparing with the critic's values."""
        if values is None:
            raise ConfigError("PPO needs a critic's values: make the learner with a critic")
        pairs = [
            (episode, said)
            for group, judged in zip(groups, values, strict=True)
            for episode, said in zip(group.episodes, judged, strict=True)
            if not episode.failed
        ]
        raw = [self._advantages(episode, said) for episode, said in pairs]
        shown = whiten(raw) if self.whiten else raw
        found = tuple(
            CreditedEpisode(episode, better, returns=bare + said[:-1], values=said[:-1])
            for (episode, said), bare, better in zip(pairs, raw, shown, strict=True)
        )
        return Credit(found, {**_metrics(groups, found), **_critic_metrics(found)})

    def _advantages(self, episode: TokenEpisode, said: Floats) -> Floats:
        turns = episode.token_turns
        if len(said) != len(turns) + 1:
            raise ValueError(f"{len(said)} values for {len(turns)} action tokens and the end")
        values = said.copy()
        if episode.terminated or not self.bootstrap:
            values[-1] = 0.0
        elif episode.sequences[-1].turns[-1] != READ:
            raise ValueError("an episode that was cut off lacks its last state: `Weaver.end` it")
        return gae(
            episode.turn_rewards(self.invalid_penalty),
            values,
            turns=turns,
            gamma=(self.token_gamma, self.gamma),
            lam=(self.token_lam, self.lam),
        )


def _check_shares(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name} is {value}; it must be from 0 to 1")


class _Penalty(Protocol):
    @property
    def invalid_penalty(self) -> float: ...

    @property
    def penalise(self) -> str: ...


def _check_penalty(settings: _Penalty) -> None:
    if settings.penalise not in ("return", "turn"):
        known = did_you_mean(settings.penalise, ("return", "turn"))
        raise ConfigError(f"no way to penalise '{settings.penalise}'.{known}")
    if settings.invalid_penalty < 0:
        raise ConfigError(f"invalid_penalty is {settings.invalid_penalty}: it would be a reward")


def _whole_episodes(
    members: Sequence[TokenEpisode], compare: Callable[[Floats], Floats], *, penalty: _Penalty
) -> list[Floats] | None:
    """Give every turn of an episode the episode's advantage; None where none is better."""
    on_return = penalty.invalid_penalty if penalty.penalise == "return" else 0.0
    on_turn = penalty.invalid_penalty if penalty.penalise == "turn" else 0.0
    returns = np.array([member.turn_rewards(on_return).sum() for member in members])
    if not has_spread(returns):
        return None
    return [
        np.full(len(member.rewards), advantage) - on_turn * member.refusals
        for member, advantage in zip(members, compare(returns), strict=True)
    ]


def credit_by_group(
    groups: Sequence[TokenGroup],
    judge: Callable[[Sequence[TokenEpisode]], list[Floats] | None],
) -> Credit:
    """Judge each group by itself, members that did not fail only.

    Args:
        groups: the groups.
        judge: returns for each member the advantage of each of its turns, or None where no member
            was better than another. Such a group is left out and counted.
    """
    found: list[CreditedEpisode] = []
    skipped = 0
    for group in groups:
        members = group.valid
        judged = judge(members) if len(members) > 1 else None
        skipped += judged is None
        for member, advantages in zip(members, judged, strict=True) if judged else ():
            found.append(CreditedEpisode(member, advantages[member.token_turns]))
    metrics = _metrics(groups, found)
    return Credit(tuple(found), {**metrics, "credit/groups_without_variance": float(skipped)})


def _metrics(groups: Sequence[TokenGroup], found: Sequence[CreditedEpisode]) -> dict[str, float]:
    every = [episode for group in groups for episode in group.episodes]
    valid = [episode for episode in every if not episode.failed]
    metrics = {
        "credit/groups": float(len(groups)),
        "credit/failed_episodes": float(len(every) - len(valid)),
        "credit/trained_episodes": float(len(found)),
        "credit/trained_tokens": float(sum(len(one.advantages) for one in found)),
    }
    if valid:
        turns = sum(len(episode.rewards) for episode in valid)
        metrics |= {
            "credit/reward_mean": float(np.mean([sum(episode.rewards) for episode in valid])),
            "credit/success": float(np.mean([episode.success for episode in valid])),
            "credit/refused": float(sum(e.refusals.sum() for e in valid) / max(1, turns)),
        }
    if found:
        flat = np.concatenate([one.advantages for one in found])
        metrics |= {
            "critic/advantages/mean": float(flat.mean()),
            "critic/advantages/max": float(flat.max()),
            "critic/advantages/min": float(flat.min()),
        }
    return metrics


def _critic_metrics(found: Sequence[CreditedEpisode]) -> dict[str, float]:
    if not found:
        return {}
    values = np.concatenate([one.values for one in found if one.values is not None])
    returns = np.concatenate([one.returns for one in found if one.returns is not None])
    metrics = {
        "critic/values/mean": float(values.mean()),
        "critic/returns/mean": float(returns.mean()),
    }
    explained = explained_variance(values, returns)
    return metrics if np.isnan(explained) else {**metrics, "critic/explained_variance": explained}
