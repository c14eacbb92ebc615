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

_AT_ONCE = 32
"""Queries scored together: more would only fill memory with scores."""
_PEAK = 64
_ONE_THREAD = 8192
"""Numbers of a matrix that BLAS multiplies with a vector without calling other threads."""
_GONE = -9.0
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


def dots(vectors: Vectors, query: Vectors, *, out: Vectors) -> None:
    """Write the product of every row with the query to `out`.

    In pieces so small that BLAS does each in the calling thread. The work is bound by memory, so
    more threads gain little, and on a busy machine waiting for them costs many times as much.
    """
    piece = max(1, _ONE_THREAD // vectors.shape[1])
    whole = len(vectors) - len(vectors) % piece
    stacked = vectors[:whole].reshape(-1, piece, vectors.shape[1])
    np.matmul(stacked, query, out=out[:whole].reshape(-1, piece))
    np.matmul(vectors[whole:], query, out=out[whole:])


def scan(
    blocks: Iterable[Block], queries: Vectors, *, k: int, skip: Sequence[Rows]
) -> list[list[Found]]:
    """Return the k nearest rows of each query, nearest first, without the rows it skips."""
    filled = [block for block in blocks if len(block.rows)]
    if not filled:
        return [[] for _ in queries]
    found = []
    for start in range(0, len(queries), _AT_ONCE):
        part = queries[start : start + _AT_ONCE]
        scores = _scores(filled, part)
        for query, line, skipped in zip(part, scores, skip[start:], strict=False):
            found.append(_best(filled, query, line, k=k, skip=skipped))
    return found


def _scores(blocks: Sequence[Block], queries: Vectors) -> Vectors:
    """Return the fast scores of all rows, block after block, one line per query."""
    scores = np.empty((len(queries), sum(len(block.rows) for block in blocks)), dtype=np.float32)
    start = 0
    for block in blocks:
        end = start + len(block.rows)
        if len(queries) == 1:
            dots(block.vectors, queries[0], out=scores[0, start:end])
        else:
            np.matmul(queries, block.vectors.T, out=scores[:, start:end])
        if len(block.dead):
            scores[:, start + block.dead] = _GONE
        start = end
    return scores


def _best(
    blocks: Sequence[Block], query: Vectors, scores: Vectors, *, k: int, skip: Rows
) -> list[Found]:
    """Find the rows that may be among the k nearest, and score those exactly."""
    if len(skip):
        start = 0
        for block in blocks:
            places = np.searchsorted(block.rows, skip)
            places = places[places < len(block.rows)]
            scores[start + places[np.isin(block.rows[places], skip)]] = _GONE
            start += len(block.rows)
    good = np.flatnonzero(scores >= max(_low_bar(scores, k) - NEAR, _GONE / 2))
    if len(good) > k:
        near = scores[good]
        good = good[near >= np.partition(near, -k)[-k] - NEAR]
    starts = np.cumsum([0, *(len(block.rows) for block in blocks)])
    cuts = np.searchsorted(good, starts).tolist()
    rows, vectors = [], []
    for block, start, first, last in zip(blocks, starts, cuts, cuts[1:], strict=False):
        if first < last:
            rows.append(block.rows[good[first:last] - start])
            vectors.append(block.vectors[good[first:last] - start])
    if not rows:
        return []
    return rescore(np.concatenate(rows), np.concatenate(vectors), query, k=k)


def _low_bar(scores: Vectors, k: int) -> float:
    """Return a score that at least k rows reach, quickly: the k-th best of many rows' maxima."""
    whole = len(scores) - len(scores) % _PEAK
    if whole < 4 * k * _PEAK:
        return float(np.partition(scores, -k)[-k]) if len(scores) > k else _GONE
    peaks = scores[:whole].reshape(-1, _PEAK).max(axis=1)
    return float(np.partition(peaks, -k)[-k])
