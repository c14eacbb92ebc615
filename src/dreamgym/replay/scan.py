"""Exact nearest neighbours: every vector that may be found is compared with the query.

Scores are computed twice: fast for all rows, then again, one by one in double precision, for those
that may matter. So a result depends neither on the other queries of a batch nor on how the rows are
cut into blocks, and equal vectors have equal scores; those are ordered by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Vectors

Rows = NDArray[np.int64]

NEAR = 1e-5
"""Fast scores may be off by this much; what comes closer to the k-th best is scored again."""

_CHUNK = 32_768
_GONE = np.float32(-9.0)
"""Below any cosine: marks rows that must not be found."""


class Found(NamedTuple):
    """A stored row and its cosine with the query."""

    row: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors of one group, in the order of their rows."""

    rows: Rows
    """Ascending."""
    vectors: Vectors
    dead: Rows
    """Positions of rows that were removed."""


def order(found: Found) -> tuple[float, int]:
    """Sort the nearest first, and equals by row."""
    return -found.similarity, found.row


def rescore(rows: Rows, vectors: NDArray[np.floating], query: Vectors, *, k: int) -> list[Found]:
    """Return the k nearest of a few rows, scored exactly."""
    scores = (vectors.astype(np.float64) * query).sum(axis=1)
    found = [Found(*pair) for pair in zip(rows.tolist(), scores.tolist(), strict=True)]
    return sorted(found, key=order)[:k]


def scan(
    blocks: Iterable[Block], queries: Vectors, *, k: int, skip: Sequence[Rows]
) -> list[list[Found]]:
    """Return the k nearest rows of each query, nearest first, without the rows it skips."""
    races = [_Race(query, k, skipped) for query, skipped in zip(queries, skip, strict=True)]
    for block in blocks:
        for start in range(0, len(block.rows), _CHUNK):
            end = min(start + _CHUNK, len(block.rows))
            rows, vectors = block.rows[start:end], block.vectors[start:end]
            dead = block.dead[(block.dead >= start) & (block.dead < end)] - start
            scores = queries @ vectors.T
            for race, line in zip(races, scores, strict=True):
                line[dead] = _GONE
                race.enter(rows, vectors, line)
    return [race.winners() for race in races]


class _Race:
    """The best rows of one query so far."""

    def __init__(self, query: Vectors, k: int, skip: Rows) -> None:
        self._query = query
        self._k = k
        self._skip = skip
        self._bar = float(_GONE) / 2
        """The k-th best score so far."""
        self._rows: list[Rows] = []
        self._vectors: list[Vectors] = []
        self._scores: list[Vectors] = []

    def enter(self, rows: Rows, vectors: Vectors, scores: Vectors) -> None:
        if len(self._skip):
            places = np.searchsorted(rows, self._skip)
            places = places[places < len(rows)]
            scores[places[np.isin(rows[places], self._skip)]] = _GONE
        good = np.flatnonzero(scores >= self._bar - NEAR)
        if len(good) > 4 * self._k:
            self._bar = float(np.partition(scores[good], -self._k)[-self._k])
            good = good[scores[good] >= self._bar - NEAR]
        if len(good):
            self._rows.append(rows[good])
            self._vectors.append(vectors[good])
            self._scores.append(scores[good])

    def winners(self) -> list[Found]:
        if not self._rows:
            return []
        rows, vectors = np.concatenate(self._rows), np.concatenate(self._vectors)
        scores = np.concatenate(self._scores)
        if len(rows) > self._k:
            bar = np.partition(scores, -self._k)[-self._k]
            good = scores >= bar - NEAR
            rows, vectors = rows[good], vectors[good]
        return rescore(rows, vectors, self._query, k=self._k)
