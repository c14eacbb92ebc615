"""What happened before in an episode: its turns, and what was said that one has to remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier action and what was said to it."""

    action: str
    said: tuple[str, ...] = ()
    refused: bool = False


def notes_of(history: Sequence[Turn], *, window: int, most: int) -> tuple[str, ...]:
    """Return what was said before the window and may still matter: told once, not a refusal."""
    earlier = history[: max(0, len(history) - window)]
    shown = {words for turn in history[len(earlier) :] for words in turn.said}
    told = (words for turn in earlier if not turn.refused for words in turn.said)
    # A note of few words is a receipt, such as `taken`; what one has to remember is longer.
    worth = [words for words in told if len(words.split()) > _RECEIPT and words not in shown]
    return tuple(dict.fromkeys(reversed(worth)))[:most][::-1]


_RECEIPT = 3
