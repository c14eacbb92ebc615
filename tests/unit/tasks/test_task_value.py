"""What a task is worth: Eq. 7 by hand, and how old values fade."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_groups import group, real_task

from dreamgym.errors import ConfigError
from dreamgym.tasks.value import Visit, Worth, group_value, visit_of


@pytest.mark.parametrize(
    ("wins", "value"), [(0, 0.0), (1, 0.109375), (2, 0.1875), (3, 0.234375), (4, 0.25), (8, 0.0)]
)
def test_the_value_of_a_group_is_the_variance_of_its_outcomes(wins, value):
    assert group_value([1.0] * wins + [0.0] * (8 - wins)) == value


@given(st.lists(st.booleans(), min_size=2, max_size=30))
def test_of_two_outcomes_it_is_p_times_not_p(outcomes):
    p = sum(outcomes) / len(outcomes)
    assert group_value([float(one) for one in outcomes]) == pytest.approx(p * (1 - p))


def test_one_outcome_has_no_variance():
    assert group_value([]) is None
    assert group_value([1.0]) is None


def test_failed_and_unknown_episodes_are_in_no_value():
    visit = visit_of(group(real_task(1), "1f0u1"), step=7)
    assert visit == Visit(7, (1.0, 0.0, 1.0), unknown=1, failed=1)
    assert group_value(visit.rewards) == pytest.approx(2 / 9)
    assert not visit_of(group(real_task(1), "fu"), step=7).rewards
    assert [visit_of(group(real_task(1), one), 0).solved for one in ("11u", "10", "uf")] == [
        True, False, False,
    ]  # fmt: skip


def test_old_values_fade_to_what_is_unknown():
    worth = Worth(unseen=0.125, half_life=10, floor=0.01)
    assert worth.now(None, 0) == 0.125
    assert worth.now(0.25, 0) == 0.25
    assert worth.now(0.25, 10) == pytest.approx(0.1875)
    assert worth.now(0.0, 0) == 0.01
    assert worth.now(0.0, 20) == pytest.approx(0.75 * 0.125)
    assert worth.now(0.0, 10_000) == pytest.approx(0.125)
    for wrong in ({"half_life": 0}, {"floor": 0.0}, {"unseen": -1}):
        with pytest.raises(ConfigError):
            Worth(**wrong)
