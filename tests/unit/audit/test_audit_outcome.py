"""Outcomes in two worlds, worked out by hand."""

import pytest
from made_pairs import pair

from dreamgym.audit.on_policy import sum_up_policy
from dreamgym.audit.outcome import outcome_figures

PAIRS = [pair(*letters, task=f"t{n}") for n, letters in enumerate(
    ["ww", "ww", "wl", "wl", "lw", "ll", "ll", "ll"]
)]  # fmt: skip


def test_by_hand():
    found = outcome_figures(PAIRS)
    assert found.precision.mean == pytest.approx(2 / 4)
    assert found.recall.mean == pytest.approx(2 / 3)
    assert found.agreement.mean == pytest.approx(5 / 8)
    assert found.dream_success.mean == pytest.approx(4 / 8)
    assert found.real_success.mean == pytest.approx(3 / 8)
    assert found.gap.mean == pytest.approx(1 / 8)
    assert found.gap.low < 0 < found.gap.high


def test_unknown_and_broken_episodes_change_no_figure():
    extra = [pair("u", "w"), pair("f", "w"), pair("w", "f")]
    found = sum_up_policy("p", [*PAIRS, *extra], {})
    assert (found.episodes, found.unknown, found.failed) == (11, 1, 2)
    assert found.figures == outcome_figures(PAIRS)
    assert found.first_failure == "it broke"


def test_own_real_episodes_stand_beside_the_dreams():
    found = sum_up_policy("p", PAIRS, {}, own=[pair("w", "w"), pair("l", "w", task="other")])
    assert found.own.real_success.mean == 1.0
    assert found.own.gap.mean == -0.5
    assert found.plain()["own_gap"]["mean"] == -0.5


def test_kinds_have_figures_of_their_own():
    found = sum_up_policy("p", PAIRS, {f"t{n}": "odd" if n % 2 else "even" for n in range(8)})
    assert {kind: one.dream_success.count for kind, one in found.by_kind} == {"even": 4, "odd": 4}
