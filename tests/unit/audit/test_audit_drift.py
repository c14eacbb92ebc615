"""Where dreams part from reality: curves worked out by hand."""

import pytest
from made_pairs import told_as

from dreamgym.audit.drift import first_difference, measure_drift
from dreamgym.audit.retell import Pair
from dreamgym.types import Source


def pair(dream, real, **flags):
    return Pair(told_as(dream, source=Source.DREAM, **flags), told_as(real))


def test_the_first_difference():
    assert first_difference(pair(["a", "b"], ["a", "b"])) == (None, 2)
    assert first_difference(pair(["a", "x", "c"], ["a", "b", "c"])) == (1, 2)
    assert first_difference(pair(["!a"], ["a"])) == (0, 1)
    assert first_difference(pair(["a", "b"], ["a", "b"], won=True)) == (1, 2)


def test_words_said_are_no_state():
    assert first_difference(pair(["a\n> yes"], ["a\n> oh yes"])) == (None, 1)


def test_a_dream_that_does_not_know_says_nothing_at_its_end():
    assert first_difference(pair(["a", "b"], ["a", "c"], unknown=True)) == (None, 1)


def test_the_curve_by_hand():
    pairs = [
        pair(["x"], ["a"]),
        pair(["a", "x", "c"], ["a", "b", "c"]),
        pair(["a", "b", "c"], ["a", "b", "c"]),
        pair(["a"], ["a"]),
    ]
    found = measure_drift(pairs)
    points = [(one.step, one.agreeing, one.drifted, one.share) for one in found.curve]
    assert points == [(1, 4, 1, 0.75), (2, 2, 1, 0.375), (3, 1, 0, 0.375)]
    assert found.per_step.mean == pytest.approx(2 / 7)
    assert found.state_error.mean == pytest.approx(2 / 7)
    assert found.reward_error.mean == 0
    assert found.by_verb == (("go", 2, 7),)


def test_pairs_that_broke_are_left_out():
    broken = Pair(told_as(["x"], broken=True, source=Source.DREAM), told_as(["a"]))
    assert measure_drift([broken]).curve == ()
    assert not measure_drift([broken]).per_step.known
