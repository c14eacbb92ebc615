"""The paper's bounds with its own constants."""

import pytest

from dreamgym.audit.bound import Bound
from dreamgym.audit.interval import NOTHING, Figure


def share(mean):
    return Figure(mean, 0.0, 1.0, 100)


def test_by_hand():
    found = Bound("here", 0.9, 0.01, share(0.02), share(0.001))
    assert found.largest_value == pytest.approx(10)
    assert found.model_error == pytest.approx(0.02 / 0.1 + 180 * 0.001)
    assert found.trust_region == pytest.approx(4 * 0.9 / 0.01 * 10 * 0.01)
    assert found.needed_gain == pytest.approx(36 + 2 * 0.38)
    assert not found.says_nothing


@pytest.mark.parametrize(("gamma", "factor"), [(0.99, 1.98e4), (0.95, 760), (0.9, 180)])
def test_the_factor_of_the_transition_error(gamma, factor):
    found = Bound("here", gamma, 0.0, share(0.0), share(1.0))
    assert found.model_error == pytest.approx(factor)
    assert found.says_nothing


def test_what_was_not_measured_bounds_nothing():
    plain = Bound("here", 0.9, 0.01, NOTHING, NOTHING).plain()
    assert plain["lemma_1_model_error"] is None
    assert plain["theorem_1_needed_gain"] is None
    assert "not the suprema" in plain["terms_are"]
