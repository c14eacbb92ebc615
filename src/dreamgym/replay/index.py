"""Exact nearest-neighbour search in memory: one matrix of unit vectors per group of the store.

Filters choose whole groups, so a search reads only the rows that may be found. Matrices only ever
grow at their end, and removals make new ones: a view taken at one moment never changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Vectors

Rows = NDArray[np.int64]

_FETCH = 8192
_CHUNK = 16_384
_NEAR = 1e-5
"""Fast scores may be off by this much; what is closer to the k-th best is scored again."""


@dataclass(frozen=True, slots=True)
class Found:
    """A stored row and its cosine with the query."""

    row: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Block:
    """The vectors of one group: row numbers ascending, one unit vector each."""

    rows: Rows
    vectors: Vectors


class VectorIndex:
    """The vectors of a store, kept up to date with the file."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._blocks: dict[int, _Growing] = {}
        self._last_row = 0
        self._removals = "0"

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was stored, and drop what was removed, since the last call."""
        found = connection.execute("SELECT value FROM meta WHERE name = 'removals'").fetchone()
        if found is not None and found[0] != self._removals:
            self._drop_removed(connection)
            self._removals = found[0]
        cursor = connection.execute(
            "SELECT row, grp, vector FROM vectors WHERE row > ? ORDER BY row", (self._last_row,)
        )
        while batch := cursor.fetchmany(_FETCH):
            rows, codes, blobs = zip(*batch, strict=True)
            self._append(
                np.array(rows, dtype=np.int64),
                np.array(codes, dtype=np.int64),
                np.frombuffer(b"".join(blobs), dtype=np.float16).reshape(-1, self._dimensions),
            )
            self._last_row = rows[-1]

    def view(self) -> dict[int, Block]:
        """Return the present state; it does not change when the index does."""
        return {code: block.view() for code, block in self._blocks.items()}

    def _append(self, rows: Rows, codes: NDArray[np.int64], vectors: NDArray[np.float16]) -> None:
        for code in np.unique(codes).tolist():
            mine = codes == code
            block = self._blocks.setdefault(code, _Growing(self._dimensions))
            block.append(rows[mine], vectors[mine])

    def _drop_removed(self, connection: sqlite3.Connection) -> None:
        live = np.fromiter(
            (row for (row,) in connection.execute("SELECT row FROM vectors")), dtype=np.int64
        )
        for block in self._blocks.values():
            block.keep(live)


class _Growing:
    """A block with room at its end."""

    def __init__(self, dimensions: int) -> None:
        self._rows: Rows = np.empty(0, dtype=np.int64)
        self._vectors: Vectors = np.empty((0, dimensions), dtype=np.float32)
        self._count = 0

    def append(self, rows: Rows, vectors: NDArray[np.floating]) -> None:
        end = self._count + len(rows)
        if end > len(self._rows):
            self._reserve(max(end, len(self._rows) * 3 // 2))
        self._rows[self._count : end] = rows
        self._vectors[self._count : end] = vectors
        self._count = end

    def keep(self, live: Rows) -> None:
        kept = np.isin(self._rows[: self._count], live, assume_unique=True)
        if not kept.all():
            self._rows = self._rows[: self._count][kept]
            self._vectors = self._vectors[: self._count][kept]
            self._count = len(self._rows)

    def view(self) -> Block:
        return Block(self._rows[: self._count], self._vectors[: self._count])

    def _reserve(self, room: int) -> None:
        rows = np.empty(room, dtype=np.int64)
        vectors = np.empty((room, self._vectors.shape[1]), dtype=np.float32)
        rows[: self._count] = self._rows[: self._count]
        vectors[: self._count] = self._vectors[: self._count]
        self._rows, self._vectors = rows, vectors


def nearest(
    blocks: Iterable[Block], queries: Vectors, *, k: int, skip: Sequence[Sequence[int]]
) -> list[list[Found]]:
    """Return the k nearest rows of each query, nearest first, without the rows it skips.

    Scores that matter are computed again one by one in double precision, so a result depends
    neither on the other queries of the batch nor on how the matrices are cut; equal scores are
    ordered by row.
    """
    if k < 1 or not len(queries):
        return [[] for _ in queries]
    parts = list(_parts(blocks))
    merged: list[list[Found]] = []
    picked = [_candidates(part, queries, k=k, skip=skip) for part in parts]
    for number, query in enumerate(queries):
        found = [
            hit
            for part, chosen in zip(parts, picked, strict=True)
            for hit in _rescored(part, chosen[number], query)
        ]
        found.sort(key=lambda hit: (-hit.similarity, hit.row))
        merged.append(found[:k])
    return merged


def _parts(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        for start in range(0, len(block.rows), _CHUNK):
            end = start + _CHUNK
            yield Block(block.rows[start:end], block.vectors[start:end])


def _candidates(
    part: Block, queries: Vectors, *, k: int, skip: Sequence[Sequence[int]]
) -> list[NDArray[np.int64]]:
    """Return, for each query, the positions that may be among its k nearest of this part."""
    scores = queries @ part.vectors.T
    chosen = []
    for line, skipped in zip(scores, skip, strict=True):
        if skipped:
            places = np.searchsorted(part.rows, skipped)
            places = places[places < len(part.rows)]
            line[places[np.isin(part.rows[places], skipped)]] = -np.inf
        if len(line) > k:
            kth = np.partition(line, -k)[-k]
            chosen.append(np.flatnonzero((line >= kth - _NEAR) & (line > -2.0)))
        else:
            chosen.append(np.flatnonzero(line > -2.0))
    return chosen


def _rescored(part: Block, chosen: NDArray[np.int64], query: Vectors) -> Iterator[Found]:
    products = part.vectors[chosen].astype(np.float64) * query
    for place, score in zip(chosen.tolist(), products.sum(axis=1).tolist(), strict=True):
        yield Found(int(part.rows[place]), score)
