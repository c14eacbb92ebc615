"""Rank correlation: whether two figures put things in the same order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> float:
    """Return Spearman's correlation; ties share their mean rank. NaN where one has no order."""
    return spearman_within([np.column_stack([one, other])])


def spearman_within(tables: Sequence[np.ndarray]) -> float:
    """Return Spearman's correlation of two columns, by ranks within each table alone.

    Tables that differ in level and not in order, as seeds do, count as alike. NaN where a column
    has no order in any table.
    """
    both = np.concatenate(
        [np.column_stack([_centred_ranks(column) for column in table.T]) for table in tables]
    )
    ours, theirs = both.T
    if not ours.any() or not theirs.any():
        return float("nan")
    return float(ours @ theirs / np.sqrt((ours @ ours) * (theirs @ theirs)))


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    return ranks(values) - (len(values) - 1) / 2.0


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value from 0 on; equal values share their mean rank."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    same = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(below + (same - 1) / 2.0, dtype=np.float64)
