"""How much better an action was than expected: the arithmetic, on plain arrays.

Every function here is a formula of `docs/training.md`. What to apply to which episodes, and what to
leave out, is decided in `algorithms.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dreamgym.train.tokens import Floats

EPSILON = 1e-6
"""Added to a standard deviation before dividing by it."""


def has_spread(returns: Floats) -> bool:
    """Tell whether returns differ by more than rounding does. Fewer than two never do."""
    if len(returns) < 2:
        return False
    return bool(np.ptp(returns) > 1e-9 * max(1.0, float(np.abs(returns).max())))


def group_advantages(returns: Floats, *, scale: bool) -> Floats:
    """Return (R - mean) / std, or R - mean: GRPO without `scale` is Dr. GRPO's.

    The deviation is the sample's (divided by n - 1). Without spread, nothing was better.
    """
    if not has_spread(returns):
        return np.zeros_like(returns)
    above = returns - float(returns.mean())
    return above / (float(returns.std(ddof=1)) + EPSILON) if scale else above


def leave_one_out(returns: Floats) -> Floats:
    """Return each R less the mean of the others (RLOO)."""
    count = len(returns)
    if not has_spread(returns):
        return np.zeros_like(returns)
    return (returns - float(returns.mean())) * (count / (count - 1))


def discounted_returns(rewards: Floats, *, gamma: float) -> Floats:
    """Return for each turn the rewards from there on, each step further counting gamma less."""
    found = np.empty_like(rewards)
    ahead = 0.0
    for turn in reversed(range(len(rewards))):
        ahead = rewards[turn] + gamma * ahead
        found[turn] = ahead
    return found


def step_advantages(
    states: Sequence[Sequence[str]], returns: Sequence[Floats], *, scale: bool
) -> list[Floats]:
    """Compare the turns that acted in the same state, wherever in a group's episodes (GiGPO).

    A state that only one turn was in says nothing: its advantage is 0, not its bare return.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for episode, seen in enumerate(states):
        for turn, state in enumerate(seen):
            places.setdefault(state, []).append((episode, turn))
    found = [np.zeros_like(rewards) for rewards in returns]
    for members in places.values():
        values = np.array([returns[episode][turn] for episode, turn in members])
        better = group_advantages(values, scale=scale)
        for (episode, turn), advantage in zip(members, better, strict=True):
            found[episode][turn] = advantage
    return found


def gae(
    rewards: Floats,
    values: Floats,
    *,
    turns: NDArray[np.int64],
    gamma: tuple[float, float],
    lam: tuple[float, float],
) -> Floats:
    """Return the generalised advantage of every action token of an episode (the paper's for PPO).

    The tokens of all actions form one chain; what the environment said between two actions is no
    step of it. Along the chain A = delta + gamma lam A', with delta = r + gamma V' - V.

    Args:
        rewards: per turn; a turn's reward comes with its last token.
        values: before each token, and one more: after the last token (0 if the task ended there).
        turns: the turn of each token.
        gamma: discount from one token to the next, (within a turn, from a turn to the next).
        lam: how far to trust rewards over values, likewise.
    """
    earned, known, order = rewards.tolist(), values.tolist(), turns.tolist()
    found = np.empty(len(order))
    ahead = 0.0
    for place in reversed(range(len(order))):
        closes = place + 1 == len(order) or order[place + 1] != order[place]
        reward = earned[order[place]] if closes else 0.0
        delta = reward + gamma[closes] * known[place + 1] - known[place]
        ahead = delta + gamma[closes] * lam[closes] * ahead
        found[place] = ahead
    return found


def whiten(parts: Sequence[Floats]) -> list[Floats]:
    """Shift and scale numbers, given in parts, to mean 0 and variance 1 over all of them."""
    whole = np.concatenate([*parts, np.empty(0)])
    if len(whole) < 2:
        return [np.zeros_like(part) for part in parts]
    scale = 1 / np.sqrt(whole.var(ddof=1) + 1e-8)
    return [(part - whole.mean()) * scale for part in parts]


def explained_variance(values: Floats, returns: Floats) -> float:
    """Return the share of the returns' variance that the values knew: 1 is all, 0 or less none."""
    spread = float(returns.var()) if len(returns) else 0.0
    return float("nan") if spread < 1e-12 else 1 - float((returns - values).var()) / spread
