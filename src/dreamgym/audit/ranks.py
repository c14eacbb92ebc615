"""Rank correlation: whether two figures put things in the same order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> float:
    """Return Spearman's correlation; ties share their mean rank. NaN where one has no order."""
    ours, theirs = ranks(np.asarray(one)), ranks(np.asarray(other))
    if ours.std() == 0 or theirs.std() == 0:
        return float("nan")
    return float(np.corrcoef(ours, theirs)[0, 1])


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value from 0 on; equal values share their mean rank."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    same = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(below + (same - 1) / 2.0, dtype=np.float64)
