"""Episodes of made-up tokens for tests of arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from dreamgym.train.tokens import TokenEpisode, TokenGroup, Weaver
from dreamgym.types import SampledTokens


def made_episode(
    rewards: Sequence[float],
    *,
    lengths: Sequence[int] | None = None,
    left: bool = False,
    **facts: object,
) -> TokenEpisode:
    """Make an episode with these rewards: turn n reads one token and says `lengths[n]` (or 1).

    `left` adds the state in which the episode was left.
    """
    weaver, prompt = Weaver(), ()
    for turn, count in enumerate(lengths or [1] * len(rewards)):
        prompt = (*prompt, 1)
        said = tuple(2 + (turn + place) % 5 for place in range(count))
        weaver.add(prompt, SampledTokens(said, (-0.5,) * count))
        prompt += said
    if left:
        weaver.end((*prompt, 1))
    return TokenEpisode(weaver.sequences(), tuple(map(float, rewards)), **facts)


def made_group(returns: Sequence[float], **facts: object) -> TokenGroup:
    """Make a group of one-turn episodes with these returns."""
    return TokenGroup("task", tuple(made_episode([reward], **facts) for reward in returns))


BROKEN = TokenEpisode((), (), failed=True)
