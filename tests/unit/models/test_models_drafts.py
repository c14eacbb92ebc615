"""Guesses: what followed before is expected to follow again."""

from __future__ import annotations

from dreamgym.models.drafts import Drafts


def test_what_was_seen_is_guessed_to_its_end() -> None:
    drafts = Drafts()
    drafts.learn([7, 8, 1, 2, 3, 4], 2)
    assert drafts.guess([9, 7, 8], most=9) == [1, 2, 3, 4]
    assert drafts.guess([9, 7, 8], most=2) == [1, 2]
    assert drafts.guess([9, 7], most=9) == []
    assert drafts.guess([7, 8], most=0) == []


def test_more_context_decides_before_less() -> None:
    drafts = Drafts()
    drafts.learn([1, 1, 5, 6, 2], 4)
    drafts.learn([3, 3, 5, 6, 4], 4)
    assert drafts.guess([1, 1, 5, 6], most=1) == [2]
    assert drafts.guess([3, 3, 5, 6], most=1) == [4]


def test_the_usual_outlives_an_exception() -> None:
    drafts = Drafts()
    for following in (3, 3, 4):
        drafts.learn([1, 2, following], 2)
    assert drafts.guess([1, 2], most=1) == [3]
    for _ in range(2):
        drafts.learn([1, 2, 4], 2)
    assert drafts.guess([1, 2], most=1) == [4]


def test_too_much_is_dropped() -> None:
    drafts = Drafts(capacity=3)
    drafts.learn([1, 2, 3, 4, 5, 6], 2)
    drafts.learn([7, 8, 9], 2)
    assert drafts.guess([1, 2], most=1) == []
    assert drafts.guess([7, 8], most=1) == [9]
