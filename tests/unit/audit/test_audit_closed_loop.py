"""Policies in both worlds, and whether the dream orders them as reality does."""

import pytest
from made_pairs import pair

from dreamgym.audit.closed_loop import rank_correlation, sum_up_loop


def policy(dream_wins, real_wins, *, of=10, name="p"):
    return [
        pair("w" if n < dream_wins else "l", "w" if n < real_wins else "l",
             task=f"t{n}", behaviour=name)
        for n in range(of)
    ]  # fmt: skip


def test_the_same_order_is_one_and_the_opposite_minus_one():
    assert rank_correlation([policy(1, 2), policy(5, 6), policy(9, 10)]).mean == pytest.approx(1)
    assert rank_correlation([policy(9, 2), policy(5, 6), policy(1, 10)]).mean == pytest.approx(-1)


def test_ties_share_their_rank():
    # Ranks 0.5 0.5 2 against 0 1 2: a correlation of sqrt(3)/2.
    found = rank_correlation([policy(3, 1), policy(3, 5), policy(9, 9)])
    assert found.mean == pytest.approx(3**0.5 / 2)
    assert found.low <= found.mean <= found.high


def test_too_few_or_equal_policies_have_no_order():
    assert not rank_correlation([policy(1, 1), policy(5, 5)]).known
    assert not rank_correlation([policy(5, 1), policy(5, 5), policy(5, 9)]).known


def test_policies_are_told_apart_by_who_acted_and_how():
    retold = [*policy(4, 6, name="random"), *policy(9, 10, name="expert")]
    found = sum_up_loop(retold, {}, played={"mine": policy(2, 8, name="mine")})
    assert [(one.name, one.how) for one in found.policies] == [
        ("expert", "retold"),
        ("mine", "played"),
        ("random", "retold"),
    ]
    assert found.figures.agreement.mean == pytest.approx(17 / 20)
    assert found.rank_correlation.known
