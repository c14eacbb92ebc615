"""Does the dream know when it is right? Its confidence against being right.

Confidence is the probability of a reply's least sure token. It was never made to be the chance of
being right, so the bins also say where a threshold for *unknown* would cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dreamgym.audit.interval import NOTHING, Figure, ratio
from dreamgym.audit.one_step import StepCheck

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Replies of like confidence."""

    low: float
    high: float
    confidence: float
    """Their mean confidence."""
    right: Figure
    """The share of them that is right in state and flags."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Confidence against being right."""

    replies: int
    without: int
    """Answered steps for which no confidence is known, such as those that a rule decided."""
    bins: tuple[Bin, ...]
    """Only those that hold a reply."""
    expected_error: float | None
    """Mean distance of confidence and being right over the bins, weighted by their size (ECE)."""
    ranking: float | None
    """The chance that a right reply is surer than a wrong one (area under the ROC curve)."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        return {
            "replies": self.replies,
            "without_confidence": self.without,
            "expected_calibration_error": _rounded(self.expected_error),
            "ranking": _rounded(self.ranking),
            "bins": [
                {
                    "from": one.low,
                    "to": one.high,
                    "confidence": round(one.confidence, 6),
                    "right": one.right.plain(),
                }
                for one in self.bins
            ],
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def calibrate(checks: Sequence[StepCheck]) -> Calibration:
    """Return how confidence and being right go together."""
    answered = [check for check in checks if check.answer is not None]
    sure = [
        (check.real.trajectory_id, check.told.confidence, check.right)
        for check in answered
        if check.told is not None and check.told.confidence is not None
    ]
    bins = []
    for number in range(BINS):
        inside = [one for one in sure if min(int(one[1] * BINS), BINS - 1) == number]
        right = ratio((cluster, was, 1) for cluster, _, was in inside) if inside else NOTHING
        if inside:
            mean = sum(value for _, value, _ in inside) / len(inside)
            bins.append(Bin(number / BINS, (number + 1) / BINS, mean, right))
    error = sum(abs(one.confidence - one.right.mean) * one.right.count for one in bins)
    return Calibration(
        replies=len(sure),
        without=len(answered) - len(sure),
        bins=tuple(bins),
        expected_error=error / len(sure) if sure else None,
        ranking=_ranking(sure),
    )


def _ranking(sure: Sequence[tuple[str, float, bool]]) -> float | None:
    right = np.array([value for _, value, was in sure if was])
    wrong = np.sort(np.array([value for _, value, was in sure if not was]))
    if not len(right) or not len(wrong):
        return None
    below = np.searchsorted(wrong, right, side="left")
    up_to = np.searchsorted(wrong, right, side="right")
    return float((below + up_to).mean() / 2 / len(wrong))
