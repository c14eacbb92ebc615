"""Means with 95 % intervals where steps of one episode are not independent of each other.

Every figure of an audit is a ratio of two sums over steps or episodes: a precision, a recall, an
F1, a mean. Its interval comes from drawing whole episodes again and again (a clustered bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dreamgym.rollout.summary import wilson
from dreamgym.types import derive_seed

DRAWS = 1000
"""How often episodes are drawn again."""

Row = tuple[str, float, float]
"""The episode that it belongs to, what it adds above the line, what it adds below."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % interval."""

    mean: float
    """Not a number where there was nothing to measure."""
    low: float
    high: float
    count: int
    """How many steps or episodes it is a mean of."""

    @property
    def known(self) -> bool:
        """Whether there was anything to measure."""
        return not math.isnan(self.mean)

    def plain(self) -> dict[str, float | int | None]:
        """Return the figure for a JSON file; what was not measured is null."""
        if not self.known:
            return {"mean": None, "low": None, "high": None, "count": self.count}
        mean, low, high = (round(value, 6) for value in (self.mean, self.low, self.high))
        return {"mean": mean, "low": low, "high": high, "count": self.count}

    def __str__(self) -> str:
        """Return the figure as `0.500 [0.400, 0.600] of 100`."""
        if not self.known:
            return "not measured"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] of {self.count}"


NOTHING = Figure(math.nan, math.nan, math.nan, 0)
"""What could not be measured."""


def ratio(rows: Iterable[Row], *, signed: bool = False) -> Figure:
    """Return the sum above the line over the sum below it, with its interval.

    A share of exactly 0 or 1 would give an interval without width, however few episodes there
    were; there the Wilson interval over the number of episodes is given. `signed` means that
    values lie between -1 and 1, such as differences of two outcomes.
    """
    sums: dict[str, list[float]] = {}
    count = 0
    for cluster, above, below in rows:
        place = sums.setdefault(cluster, [0.0, 0.0])
        place[0] += above
        place[1] += below
        count += below != 0
    table = np.array([sums[name] for name in sorted(sums)], dtype=np.float64).reshape(-1, 2)
    table = table[table[:, 1] > 0]
    if not len(table):
        return NOTHING
    mean = float(table[:, 0].sum() / table[:, 1].sum())
    low, high = _interval(table, mean, signed=signed)
    return Figure(mean, low, high, count)


def _interval(table: np.ndarray, mean: float, *, signed: bool) -> tuple[float, float]:
    clusters = len(table)
    if signed and not table[:, 0].any():
        width = wilson(0, clusters).high
        return -width, width
    if mean in (0.0, 1.0) and not signed:
        rate = wilson(round(mean) * clusters, clusters)
        return rate.low, rate.high
    if clusters == 1:
        return (-1.0, 1.0) if signed else (0.0, 1.0)
    drawn = _draws(clusters) @ table
    drawn = drawn[drawn[:, 1] > 0]
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    return float(low), float(high)


@lru_cache(maxsize=16)
def _draws(clusters: int) -> np.ndarray:
    """Return how often each episode is in each draw; the same for every figure of as many."""
    rng = np.random.default_rng(derive_seed("bootstrap", clusters))
    chosen = rng.integers(0, clusters, size=(DRAWS, clusters))
    flat = (chosen + np.arange(DRAWS)[:, None] * clusters).ravel()
    counts = np.bincount(flat, minlength=DRAWS * clusters).reshape(DRAWS, clusters)
    return counts.astype(np.float64)
