"""Means over seeds and paired tests, against tables and by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.eval.seeds import across_seeds, compare_paired, p_words, t_probability, t_quantile


@pytest.mark.parametrize(
    ("freedom", "value"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216), (30, 2.04227), (1000, 1.96234)],
)
def test_the_interval_is_that_of_the_tables(freedom, value):
    assert t_quantile(0.975, freedom) == pytest.approx(value, abs=1e-4)


def test_known_probabilities():
    assert t_probability(1.0, 1) == pytest.approx(0.75)
    assert t_probability(0.0, 5) == pytest.approx(0.5)
    assert t_probability(math.sqrt(2), 2) == pytest.approx(0.5 + math.sqrt(2) / (2 * 2))


@given(st.floats(-30, 30), st.integers(1, 60))
def test_both_sides_add_up_to_one(t, freedom):
    assert t_probability(t, freedom) + t_probability(-t, freedom) == pytest.approx(1.0)


def test_a_mean_by_hand():
    found = across_seeds([0.4, 0.5, 0.6])
    assert found.mean == pytest.approx(0.5)
    assert found.high - found.mean == pytest.approx(4.30265 * 0.1 / math.sqrt(3), abs=1e-5)
    assert str(across_seeds([0.25])) == "0.250"
    assert across_seeds([0.25]).low is None
    with pytest.raises(ValueError, match="no seeds"):
        across_seeds([])


def test_a_paired_comparison_by_hand():
    found = compare_paired([0.6, 0.7, 0.9], [0.5, 0.5, 0.6])
    assert found.difference.mean == pytest.approx(0.2)
    # t = 0.2 / (0.1 / sqrt 3) with two degrees: tail = 1/2 - t / (2 sqrt(2 + t^2)).
    t = 0.2 / (0.1 / math.sqrt(3))
    assert found.p_t == pytest.approx(2 * (0.5 - t / (2 * math.sqrt(2 + t * t))))
    assert found.p_flip == pytest.approx(2 / 8)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_seeds_that_are_all_alike_say_nothing_of_the_spread(gap):
    alike = across_seeds([0.5 + gap] * 3)
    assert (alike.mean, alike.low, alike.high, alike.seeds) == (0.5 + gap, None, None, 3)
    # 0.6 - 0.5 and 0.5 - 0.4 are not the same floats.
    found = compare_paired([0.5 + gap, 0.4 + gap], [0.5, 0.4])
    assert (found.difference.low, found.p_t) == (None, None)
    assert found.p_flip == (0.5 if gap else 1.0)


def test_one_pair_has_no_test():
    assert compare_paired([0.5], [0.4]).p_t is None
    with pytest.raises(ValueError, match="zip"):
        compare_paired([0.5], [0.4, 0.3])


def test_no_probability_is_written_as_nothing():
    assert [p_words(p) for p in (None, 0.0, 0.0004, 0.001, 0.0625)] == [
        "", "<0.001", "<0.001", "0.001", "0.062"
    ]  # fmt: skip
