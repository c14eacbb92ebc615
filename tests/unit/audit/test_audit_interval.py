"""Intervals: hand-worked shares, whole episodes drawn again, honest ends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.audit.interval import NOTHING, ratio
from dreamgym.rollout.summary import wilson


def test_a_ratio_of_sums_by_hand():
    found = ratio([("a", 1, 1), ("a", 0, 1), ("b", 1, 1), ("b", 1, 1), ("c", 0, 0)])
    assert found.mean == 0.75
    assert found.count == 4
    assert found.low <= 0.75 <= found.high


def test_nothing_measured_is_not_zero():
    assert not ratio([]).known
    assert not ratio([("a", 0, 0)]).known
    assert ratio([]).plain() == {"mean": None, "low": None, "high": None, "count": 0}
    assert str(NOTHING) == "not measured"


@pytest.mark.parametrize("share", [0, 1])
def test_a_share_without_exception_is_as_sure_as_its_episodes_are_many(share):
    found = ratio((f"episode {n}", share, 1) for n in range(20) for _ in range(5))
    assert (found.low, found.high) == (wilson(20 * share, 20).low, wilson(20 * share, 20).high)
    assert found.count == 100


def test_steps_of_one_episode_do_not_make_it_surer():
    rng = np.random.default_rng(0)
    wins = [int(rng.random() < 0.5) for _ in range(60)]
    alone = ratio((str(n), win, 1) for n, win in enumerate(wins))
    tenfold = ratio((str(n), win, 1) for n, win in enumerate(wins) for _ in range(10))
    pretended = ratio((f"{n}/{m}", win, 1) for n, win in enumerate(wins) for m in range(10))
    assert tenfold.high - tenfold.low == pytest.approx(alone.high - alone.low, abs=1e-9)
    assert pretended.high - pretended.low < 0.5 * (alone.high - alone.low)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(150):
        rows = []
        for episode in range(40):
            tendency = rng.beta(2, 2)
            rows += [(str(episode), float(rng.random() < tendency), 1.0) for _ in range(8)]
        found = ratio(rows)
        held += found.low <= 0.5 <= found.high
    assert 0.88 <= held / 150 <= 0.99


def test_differences_that_never_occur_may_still():
    found = ratio(((str(n), 0.0, 1.0) for n in range(10)), signed=True)
    assert found.mean == 0
    assert found.low == -found.high == -wilson(0, 10).high


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=40))
def test_any_share_lies_in_its_interval(rows):
    found = ratio((name, won, 1) for name, won in rows)
    assert 0 <= found.low <= found.high <= 1
    assert found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high
    assert not math.isnan(found.mean)


def test_the_order_of_rows_does_not_matter():
    rows = [(str(n % 7), n % 3 == 0, 1) for n in range(50)]
    assert ratio(rows) == ratio(reversed(rows))
