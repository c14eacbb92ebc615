"""Rank correlations by hand."""

import math

import numpy as np
import pytest

from dreamgym.audit.ranks import ranks, spearman, spearman_within


def test_equal_values_share_their_mean_rank():
    assert ranks(np.array([30.0, 10.0, 20.0, 20.0])).tolist() == [3.0, 0.0, 1.5, 1.5]


def test_orders_that_agree_disagree_or_half_agree():
    assert spearman([1, 2, 3, 4], [10, 20, 30, 4000]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # Without ties: 1 - 6 * (1 + 1 + 1 + 1) / (4 * 15).
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)


def test_ties_by_hand():
    # Ranks 0 1.5 1.5 3 and 0 1 2 3: covariance 4.5, variances 4.5 and 5.
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))


def test_what_is_all_alike_has_no_order():
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_levels_of_tables_do_not_count():
    """Each table is in order; one lies above the other in one column and below it in the other."""
    tables = [np.array([[1.0, 20.0], [2.0, 30.0]]), np.array([[7.0, 1.0], [8.0, 2.0], [9.0, 3.0]])]
    assert spearman_within(tables) == pytest.approx(1)
    assert spearman(*np.concatenate(tables).T) < 0
