"""Guesses how answers go on, from how answers went on before: what a pass may check ahead.

A guess costs a look into a table. A model that reads several guessed tokens in one pass says what
it would have said in place of each, so wrong guesses cost time and never change an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

ORDERS = (8, 4, 2)
"""How many tokens before a guess are looked up; the first that are known decide."""
MOST_VOTES = 4


class Drafts:
    """What followed which tokens, up to a number of entries."""

    def __init__(self, *, capacity: int = 200_000) -> None:
        """Set how many entries are kept; when there are more, all are dropped."""
        self._capacity = capacity
        self._votes: dict[tuple[int, ...], tuple[int, int]] = {}
        """For some tokens, the one that follows and how firmly so."""

    def learn(self, ids: Sequence[int], start: int) -> None:
        """Take note of the tokens from `start` on, and of what stands before them."""
        if len(self._votes) > self._capacity:
            self._votes.clear()
        for place in range(start, len(ids)):
            token = ids[place]
            for order in ORDERS:
                key = tuple(ids[max(0, place - order) : place])
                said, votes = self._votes.get(key, (token, 0))
                if said == token:
                    self._votes[key] = token, min(votes + 1, MOST_VOTES)
                else:
                    self._votes[key] = (said, votes - 1) if votes > 1 else (token, 1)

    def guess(self, ids: Sequence[int], *, most: int) -> list[int]:
        """Return up to `most` tokens that may follow."""
        tail = list(ids[-ORDERS[0] :])
        known = len(tail)
        while len(tail) < known + most:
            for order in ORDERS:
                found = self._votes.get(tuple(tail[-order:]))
                if found is not None:
                    tail.append(found[0])
                    break
            else:
                break
        return tail[known:]
