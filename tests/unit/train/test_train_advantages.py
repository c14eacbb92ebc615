"""Advantages by hand: every number that is expected here was worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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

RETURNS = st.lists(st.floats(-10, 10), min_size=2, max_size=12).map(np.array)


def near(expected, **tolerance):
    return pytest.approx(np.array(expected), **{"abs": 1e-5, **tolerance})


def test_group_advantages_by_hand():
    # mean 0.25; squares .0625 x 3 + .5625 = .75; / 3 = .25; std .5
    returns = np.array([0.0, 1.0, 0.0, 0.0])
    assert group_advantages(returns, scale=True) == near([-0.5, 1.5, -0.5, -0.5])
    assert group_advantages(returns, scale=False) == near([-0.25, 0.75, -0.25, -0.25])


def test_leave_one_out_by_hand():
    # the others' means: (2 + 6) / 2 = 4, (1 + 6) / 2 = 3.5, (1 + 2) / 2 = 1.5
    assert leave_one_out(np.array([1.0, 2.0, 6.0])) == near([-3, -1.5, 4.5])


def test_discounted_returns_by_hand():
    # 4, then 0 + .5 x 4 = 2, then 1 + .5 x 2 = 2
    assert discounted_returns(np.array([1.0, 0.0, 4.0]), gamma=0.5) == near([2, 2, 4])


def test_turns_in_the_same_state_are_compared_by_hand():
    states = [("hall", "attic"), ("hall", "cellar", "hall")]
    returns = [np.array([1.0, 1.0]), np.array([0.0, 5.0, 2.0])]
    # hall: 1, 0, 2 with mean 1 and std 1; attic and cellar were seen once
    first, second = step_advantages(states, returns, scale=True)
    assert first == near([0, 0])
    assert second == near([-1, 0, 1])
    assert step_advantages(states, [2 * r for r in returns], scale=False)[1] == near([-2, 0, 2])


def test_gae_by_hand_over_turns_and_tokens():
    """Two turns: two tokens, then one. Rewards 1 and 2, values .5, .25, 1; the task ends."""
    found = gae(
        np.array([1.0, 2.0]),
        np.array([0.5, 0.25, 1.0, 0.0]),
        turns=np.array([0, 0, 1]),
        gamma=(1.0, 0.5),
        lam=(1.0, 0.8),
    )
    # last token:  delta = 2 + .5 x 0 - 1 = 1;            A = 1
    # its fellow:  delta = 1 + .5 x 1 - .25 = 1.25;       A = 1.25 + .5 x .8 x 1 = 1.65
    # first token: delta = 0 + 1 x .25 - .5 = -.25;       A = -.25 + 1 x 1 x 1.65 = 1.4
    assert found == near([1.4, 1.65, 1.0])


def test_gae_goes_on_with_the_value_after_the_end():
    settings = {"turns": np.array([0]), "gamma": (1.0, 0.5), "lam": (1.0, 1.0)}
    assert gae(np.array([1.0]), np.array([0.0, 0.0]), **settings) == near([1.0])
    assert gae(np.array([1.0]), np.array([0.0, 4.0]), **settings) == near([3.0])


@given(st.data())
def test_gae_is_what_its_sum_says(data):
    """A_j is the sum of all later deltas, each times the product of gamma lam on the way."""
    lengths = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    turns = np.repeat(np.arange(len(lengths)), lengths)
    numbers = st.floats(-2, 2)
    rewards = np.array(data.draw(st.lists(numbers, min_size=len(lengths), max_size=len(lengths))))
    size = len(turns) + 1
    values = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)))
    gamma, lam = (0.9, 0.7), (0.8, 0.6)
    found = gae(rewards, values, turns=turns, gamma=gamma, lam=lam)
    ends = [n + 1 == len(turns) or turns[n + 1] != turns[n] for n in range(len(turns))]
    for start in range(len(turns)):
        total, factor = 0.0, 1.0
        for n in range(start, len(turns)):
            g, x = (gamma[1], lam[1]) if ends[n] else (gamma[0], lam[0])
            reward = rewards[turns[n]] if ends[n] else 0.0
            total += factor * (reward + g * values[n + 1] - values[n])
            factor *= g * x
        assert found[start] == pytest.approx(total)


@given(RETURNS)
def test_with_lam_1_the_critic_is_but_a_baseline(rewards):
    turns = np.arange(len(rewards))
    values = np.append(np.linspace(-1, 1, len(rewards)), 0.0)
    found = gae(rewards, values, turns=turns, gamma=(1.0, 0.9), lam=(1.0, 1.0))
    assert found + values[:-1] == near(discounted_returns(rewards, gamma=0.9))


@given(RETURNS, st.integers(0, 100))
def test_the_order_of_members_does_not_matter(returns, seed):
    order = np.random.default_rng(seed).permutation(len(returns))
    for judge in (leave_one_out, lambda r: group_advantages(r, scale=True)):
        assert judge(returns[order]) == near(judge(returns)[order], abs=1e-6)


@given(RETURNS, st.floats(-100, 100))
def test_what_all_members_get_more_changes_nothing(returns, shift):
    spread = has_spread(returns) and np.ptp(returns) > 1e-3
    for judge in (leave_one_out, lambda r: group_advantages(r, scale=True)):
        if spread:
            assert judge(returns + shift) == near(judge(returns), abs=1e-4)
        assert judge(returns).sum() == pytest.approx(0, abs=1e-6)


@given(RETURNS, st.floats(0.1, 100))
def test_with_scale_the_unit_of_reward_does_not_matter(returns, unit):
    if np.ptp(returns) > 0.1:
        scaled = group_advantages(returns * unit, scale=True)
        assert scaled == near(group_advantages(returns, scale=True), abs=1e-3)


@pytest.mark.parametrize("returns", [[], [1.0], [0.7, 0.7], [0.1 + 0.2, 0.3, 0.3]])
def test_without_spread_nothing_was_better(returns):
    """One member, equal members, members that differ by rounding: no division by almost nothing."""
    numbers = np.array(returns, dtype=float)
    assert not has_spread(numbers)
    assert not group_advantages(numbers, scale=True).any()
    assert not group_advantages(numbers, scale=False).any()
    assert not leave_one_out(numbers).any()


def test_whitening_is_over_everything_by_hand():
    # 1, 3 and 2: mean 2, variance (1 + 1 + 0) / 2 = 1
    first, second = whiten([np.array([1.0, 3.0]), np.array([2.0])])
    assert first == near([-1, 1])
    assert second == near([0])
    assert whiten([np.array([5.0])])[0] == near([0])
    assert whiten([]) == []


def test_explained_variance_by_hand():
    returns = np.array([0.0, 2.0])  # variance 1
    assert explained_variance(returns, returns) == pytest.approx(1)
    assert explained_variance(np.array([5.0, 5.0]), returns) == pytest.approx(0)
    assert explained_variance(np.array([2.0, 0.0]), returns) == pytest.approx(-3)
    assert np.isnan(explained_variance(np.array([1.0, 2.0]), np.array([1.0, 1.0])))
