"""Packed transitions and trajectories."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dreamgym.replay.packing import (
    Group,
    pack,
    pack_trajectory,
    unpack,
    unpack_texts,
    unpack_trajectory,
)
from dreamgym.types import Source, Split, Transition

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
transitions = st.builds(
    Transition,
    id=st.just("t1#3"),
    trajectory_id=st.just("t1"),
    index=st.just(3),
    env=st.sampled_from(["toy/house", 'toy/"barn"\n']),
    task_id=st.just("task"),
    goal=texts,
    split=st.sampled_from(Split),
    source=st.sampled_from(Source),
    state=texts,
    action=texts,
    next_state=texts,
    reward=st.floats(allow_nan=False, allow_infinity=False),
    done=st.booleans(),
    success=st.booleans(),
    refused=st.booleans(),
    reasoning=st.none() | texts,
)


@given(transitions)
def test_a_transition_comes_back_as_it_was(transition):
    group = Group(transition.env, transition.source, transition.split)
    body = pack(transition).body
    assert unpack(body, trajectory_id="t1", index=3, task_id="task", group=group) == transition
    assert unpack_texts(body) == (transition.state, transition.action)


@given(transitions, transitions)
def test_equal_keys_mean_equal_content(one, two):
    def content(t):
        return replace(t, reasoning=None)

    assert (pack(one).key == pack(two).key) == (content(one) == content(two))
    assert pack(replace(one, reasoning="because", task_id="x")).key == pack(one).key


def test_a_trajectory_comes_back_as_it_was(walk):
    trajectory = walk("t1", "hall", "attic", "hall").with_reasoning(("up", None))
    assert unpack_trajectory(pack_trajectory(trajectory)) == trajectory
