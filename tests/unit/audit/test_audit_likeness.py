"""How alike two texts are."""

import pytest

from dreamgym.audit.likeness import same_state, similarities, token_f1
from dreamgym.replay.embed import HashingEmbedder


def test_words_by_hand():
    assert token_f1("a b c", "a b d") == pytest.approx(2 * 2 / 6)
    assert token_f1("cup; cup", "cup") == pytest.approx(2 * 1 / 4)
    assert token_f1("", "") == 1.0
    assert token_f1("a", "") == 0.0


def test_words_said_are_no_state():
    assert same_state("hall\n> hello", "hall")
    assert not same_state("hall", "kitchen")


def test_equal_texts_are_alike_and_others_less():
    same, other = similarities([("a cup", "a cup"), ("a cup", "a spoon")], HashingEmbedder())
    assert same == 1.0
    assert other < 1.0
    assert similarities([("x", "x")], HashingEmbedder()) == [1.0]
