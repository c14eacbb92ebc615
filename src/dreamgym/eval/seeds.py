"""What several seeds amount to: a mean with its 95 % t interval, and paired comparisons.

A seed is one observation, however many episodes were played under it. Nothing here knows what was
measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

EXACT_UP_TO = 16
"""Pairs up to which every way of flipping signs is gone through (65,536 of them)."""
NOTHING = 1e-12
"""A deviation below this is rounding."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds with its 95 % t interval.

    One seed has none, nor have several that are all alike: that no spread was seen does not mean
    that there is none.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: int

    def plain(self) -> dict[str, float | int | None]:
        """Return it for a JSON file."""
        return asdict(self)

    def within(self, least: float, most: float) -> Spread:
        """Return it with its interval cut off where no value can be."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def __str__(self) -> str:
        """Return it as `0.500 [0.400, 0.600]`."""
        if self.low is None or self.high is None:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Paired:
    """One arm minus another on the same seeds."""

    difference: Spread
    p_t: float | None
    """Two-sided paired t test; None for fewer than two pairs, and where all differ alike."""
    p_flip: float | None
    """Two-sided exact test that flips signs of differences; None for too many or too few pairs."""

    def plain(self) -> dict[str, object]:
        """Return it for a JSON file."""
        return asdict(self)


def p_words(p: float | None) -> str:
    """Return a probability as one writes it; no test says that it is nothing at all."""
    if p is None:
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def across_seeds(values: Sequence[float]) -> Spread:
    """Return the mean of one value per seed, with its 95 % t interval."""
    count = len(values)
    if not count:
        raise ValueError("no seeds, no mean")
    mean = math.fsum(values) / count
    deviation = _deviation(values) if count > 1 else 0.0
    if deviation < NOTHING:
        return Spread(mean, None, None, count)
    half = t_quantile(0.975, count - 1) * deviation / math.sqrt(count)
    return Spread(mean, mean - half, mean + half, count)


def compare_paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare two arms whose values belong together pair by pair."""
    gaps = [one - other for one, other in zip(ours, theirs, strict=True)]
    spread = across_seeds(gaps)
    if len(gaps) < 2:
        return Paired(spread, None, None)
    p_t, deviation = None, _deviation(gaps)
    if deviation >= NOTHING:
        t = abs(spread.mean) * math.sqrt(len(gaps)) / deviation
        p_t = 2 * (1 - t_probability(t, len(gaps) - 1))
    return Paired(spread, p_t, _flip_test(gaps))


def _flip_test(gaps: Sequence[float]) -> float | None:
    """Return the share of sign patterns whose sum is at least as far from 0 as the one found."""
    if len(gaps) > EXACT_UP_TO:
        return None
    found = abs(math.fsum(gaps)) - 1e-12
    sums = [
        abs(math.fsum(sign * gap for sign, gap in zip(signs, gaps, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(gaps))
    ]
    return sum(one >= found for one in sums) / len(sums)


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def t_probability(t: float, freedom: int) -> float:
    """Return the chance that Student's t is at most `t`."""
    tail = _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return 1 - tail if t > 0 else tail


def t_quantile(share: float, freedom: int) -> float:
    """Return the value that Student's t stays below with this chance, for shares above a half."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < share:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 400):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + top * d, tiny)
            c = _away_from_zero(1 + top / c, tiny)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
