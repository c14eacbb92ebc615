"""Admission rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dreamgym.replay.admit import (
    LONGEST_STATE,
    TransitionRule,
    refuse_trajectory,
    refuse_transition,
)
from dreamgym.types import EpisodeFailure, Source


@pytest.fixture
def step(walk):
    return next(walk("t1", "hall", "attic").transitions())


@pytest.fixture
def dream(step):
    return replace(step, source=Source.DREAM)


def test_whole_trajectories(walk):
    fine = walk("t1", "hall", "attic")
    assert refuse_trajectory(fine) is None
    broken = replace(fine, error=EpisodeFailure("EnvCrash", "env.step", "gone"))
    assert refuse_trajectory(broken).rule == "failed-episode"
    assert "EnvCrash" in refuse_trajectory(broken).reason
    assert refuse_trajectory(replace(fine, steps=())).rule == "no-steps"
    assert refuse_trajectory(walk("t1", "hall", "\udc80")).rule == "unwritable-text"


@pytest.mark.parametrize("field", ["state", "action", "next_state"])
def test_empty_texts(step, field):
    assert refuse_transition(step) is None
    refusal = refuse_transition(replace(step, **{field: " \n"}))
    assert (refusal.rule, refusal.index) == ("empty-text", 0)


@pytest.mark.parametrize(
    "text", ["<think>hm</think> hall", "hall<|im_end|>", "```hall```", "x" * (LONGEST_STATE + 1)]
)
def test_dreams_that_were_not_taken_apart(step, dream, text):
    assert refuse_transition(dream) is None
    assert refuse_transition(replace(dream, next_state=text)).rule == "dream-format"
    assert refuse_transition(replace(step, next_state=text)) is None


def test_dreams_that_reward_a_refusal(step, dream):
    odd = {"refused": True, "reward": 1.0}
    assert refuse_transition(replace(dream, **odd)).rule == "dream-consistency"
    assert refuse_transition(replace(dream, refused=True)) is None
    assert refuse_transition(replace(step, **odd)) is None


def test_rules_of_ones_own(step):
    rule = TransitionRule("no-attic", lambda t: "attic" if "attic" in t.next_state else None)
    assert refuse_transition(step, [rule]).rule == "no-attic"
