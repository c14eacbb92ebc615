"""From played groups to token groups: what a policy read and said, as it was sampled.

Nothing is sampled or scored here, and no action is turned to tokens again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dreamgym.agents.policy import prompt_of
from dreamgym.agents.policy_prompt import with_states
from dreamgym.agents.policy_tokens import Writer
from dreamgym.rollout.groups import Group, ended_unknown
from dreamgym.train.tokens import (
    Rewarding,
    TokenEpisode,
    TokenGroup,
    TokenSequence,
    Weaver,
    make_episode,
    outcome_rewards,
)
from dreamgym.types import Trajectory


def weave(trajectory: Trajectory, writer: Writer) -> tuple[TokenSequence, ...]:
    """Return the tokens of an episode that a policy played."""
    weaver = Weaver()
    turns = with_states(trajectory.opening, trajectory.steps)
    for number, (now, step) in enumerate(turns):
        said = step.action.tokens
        if said is None:
            raise ValueError(f"{trajectory.id}: turn {number} has no tokens as sampled")
        prompt = prompt_of(writer, trajectory.task.goal, turns[:number], now)
        if said.choice is None:
            weaver.add(prompt, said)
        else:
            choice = said.choice
            weaver.choose(prompt, choice.candidates, chosen=choice.chosen, logprob=choice.logprob)
    return weaver.sequences()


def token_groups(
    groups: Sequence[Group],
    writer: Writer,
    *,
    rewards: Rewarding = outcome_rewards,
    learn_unknown: bool = False,
) -> list[TokenGroup]:
    """Return the groups as a learner sees them, members in order.

    Args:
        groups: as played.
        writer: the policy's own, as it played with.
        rewards: what each turn earned.
        learn_unknown: count an episode that a dream gave up as one that earned nothing. Otherwise
            it is left out like a failed one: nobody knows how it would have ended.
    """
    found = []
    for group in groups:
        members = [
            _episode(one, writer, rewards=rewards, learn_unknown=learn_unknown)
            for one in group.episodes
        ]
        found.append(TokenGroup(group.task.id, tuple(members)))
    return found


def _episode(
    one: Trajectory, writer: Writer, *, rewards: Rewarding, learn_unknown: bool
) -> TokenEpisode:
    if one.error is not None or not one.steps:
        return TokenEpisode((), (), failed=True)
    episode = make_episode(one, weave(one, writer), rewards=rewards)
    return replace(episode, failed=ended_unknown(one) and not learn_unknown)
