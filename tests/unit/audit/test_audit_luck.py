"""Luck under identical actions, by hand."""

import pytest
from made_pairs import told_as

from dreamgym.audit.luck import sum_up_luck


def test_by_hand():
    steady = [told_as(["a"], won=True, task="s")] * 3
    lucky = [
        told_as(["a"], won=True, task="l"),
        told_as(["a"], task="l"),
        told_as(["b"], won=True, task="l"),
    ]
    found = sum_up_luck([steady, lucky], repeats=3)
    assert found.reward_spread.mean == pytest.approx((2 / 9) ** 0.5 / 2)
    assert found.outcome_differs.mean == 0.5
    assert found.states_differ.mean == 0.5


def test_a_broken_repetition_takes_its_episode_out():
    found = sum_up_luck([[told_as(["a"], won=True), told_as(["b"], broken=True)]], repeats=2)
    assert (found.episodes, found.failed) == (1, 1)
    assert not found.reward_spread.known
