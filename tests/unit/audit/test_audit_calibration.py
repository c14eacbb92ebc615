"""Confidence against being right, by hand."""

import pytest
from made_pairs import check

from dreamgym.audit.calibration import calibrate
from dreamgym.types import Origin


def sure(value, right, **options):
    return check(confidence=value, same=right, **options)


def test_by_hand():
    found = calibrate(
        [
            sure(0.95, True, episode="a"),
            sure(0.97, True, episode="b"),
            sure(1.0, False, episode="c"),
            sure(0.25, False, episode="d"),
            sure(0.21, True, episode="e"),
            check(),
        ]
    )
    assert (found.replies, found.without) == (5, 1)
    assert [(one.low, one.right.count) for one in found.bins] == [(0.2, 2), (0.9, 3)]
    low, high = abs(0.23 - 0.5), abs((0.95 + 0.97 + 1.0) / 3 - 2 / 3)
    assert found.expected_error == pytest.approx((2 * low + 3 * high) / 5)
    # Right 0.95 0.97 0.21 against wrong 1.0 0.25: surer in 2 of 6 comparisons.
    assert found.ranking == pytest.approx(2 / 6)


def test_equal_confidence_is_half_a_win():
    assert calibrate([sure(0.5, True), sure(0.5, False)]).ranking == 0.5


def test_unknown_and_lost_replies_are_left_out():
    found = calibrate([check(confidence=0.1, origin=Origin.UNKNOWN), check(lost=True)])
    assert (found.replies, found.without, found.bins) == (0, 0, ())
    assert found.plain()["expected_calibration_error"] is None
