"""Approximate nearest neighbours for large stores: vectors sorted into cells, few of them read.

Each group's vectors are clustered; a query compares itself with the cells' centres, reads the
nearest cells until it has seen a few thousand vectors in eight bits, and returns the best as a
shortlist to be scored exactly by the caller. Needs nothing but NumPy; never changes once built.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Vectors
from dreamgym.replay.scan import Rows
from dreamgym.types import derive_seed

Bytes = NDArray[np.int8]
Halves = NDArray[np.float16]

CELL = 400
"""Vectors per cell, on average."""
_LARGEST = 4 * CELL
_SAMPLE = 64
"""Vectors per centre that the centres are fitted to."""
_ROUNDS = 8
_ASSIGN = 16_384


@dataclass(frozen=True, slots=True)
class Cells:
    """Vectors in eight bits, cell by cell."""

    centres: Vectors
    groups: Rows
    """The group that each cell belongs to."""
    starts: Rows
    """Where each cell begins; one more at the end."""
    rows: Rows
    scales: Vectors
    """What a vector's bytes are multiplied with."""
    codes: Bytes

    def shortlist(
        self,
        query: Vectors,
        *,
        visible: Collection[int],
        alive: NDArray[np.bool_] | None,
        read: int,
        keep: int,
    ) -> Rows:
        """Return the rows that look nearest, reading about `read` vectors or as many as it takes.

        There are `keep` of them if that many are visible and alive.
        """
        nearness = self.centres @ query
        nearness[~np.isin(self.groups, list(visible))] = -np.inf
        ranked = np.argsort(-nearness)[: int(np.isfinite(nearness).sum())]
        sizes = (self.starts[1:] - self.starts[:-1])[ranked]
        seen = np.cumsum(sizes)
        rows: list[Rows] = []
        scores: list[Vectors] = []
        found = first = 0
        while first < len(ranked) and (first == 0 or found < keep):
            until = int(np.searchsorted(seen, read if first == 0 else 2 * seen[first - 1])) + 1
            for cell in ranked[first:until].tolist():
                start, end = int(self.starts[cell]), int(self.starts[cell + 1])
                near = (self.codes[start:end].astype(np.float32) @ query) * self.scales[start:end]
                mine = self.rows[start:end]
                if alive is not None:
                    near, mine = near[alive[start:end]], mine[alive[start:end]]
                rows.append(mine)
                scores.append(near)
                found += len(mine)
            first = until
        if not rows:
            return np.empty(0, dtype=np.int64)
        all_rows, all_scores = np.concatenate(rows), np.concatenate(scores)
        if len(all_rows) > keep:
            return all_rows[np.argpartition(all_scores, -keep)[-keep:]]
        return all_rows


def build(groups: Mapping[int, tuple[Rows, Halves]]) -> Cells:
    """Sort the vectors of each group into cells."""
    parts = [
        _build_group(code, rows, vectors) for code, (rows, vectors) in groups.items() if len(rows)
    ]
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    return Cells(
        centres=np.concatenate([part.centres for part in parts]),
        groups=np.concatenate([part.groups for part in parts]),
        starts=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]),
        rows=np.concatenate([part.rows for part in parts]),
        scales=np.concatenate([part.scales for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
    )


def _build_group(code: int, rows: Rows, vectors: Halves) -> Cells:
    count = max(1, len(rows) // CELL)
    rng = np.random.default_rng(derive_seed("cells", code, len(rows)))
    sample = rng.permutation(len(rows))[: count * _SAMPLE]
    centres = _fit(vectors[np.sort(sample)].astype(np.float32), count, rng)
    homes = np.concatenate(
        [
            np.argmax(vectors[start : start + _ASSIGN].astype(np.float32) @ centres.T, axis=1)
            for start in range(0, len(rows), _ASSIGN)
        ]
    )
    by_cell = np.argsort(homes, kind="stable")
    sizes = np.bincount(homes, minlength=count)
    kept, starts = _cut(sizes)
    codes, scales = _to_bytes(vectors[by_cell])
    return Cells(
        centres=centres[kept],
        groups=np.full(len(kept), code, dtype=np.int64),
        starts=starts,
        rows=rows[by_cell],
        scales=scales,
        codes=codes,
    )


def _fit(sample: Vectors, count: int, rng: np.random.Generator) -> Vectors:
    """Return centres by spherical k-means."""
    centres = sample[np.sort(rng.permutation(len(sample))[:count])]
    for _ in range(_ROUNDS):
        homes = np.concatenate(
            [
                np.argmax(sample[start : start + _ASSIGN] @ centres.T, axis=1)
                for start in range(0, len(sample), _ASSIGN)
            ]
        )
        by_cell = np.argsort(homes, kind="stable")
        present, starts = np.unique(homes[by_cell], return_index=True)
        sums = np.add.reduceat(sample[by_cell], starts, axis=0)
        lost = count - len(present)
        spare = sample[rng.integers(len(sample), size=lost)]
        centres = np.concatenate([sums, spare])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return centres


def _cut(sizes: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Cut large cells in pieces, so that none is slow to read; return centre and start of each."""
    kept: list[int] = []
    starts = [0]
    for cell, size in enumerate(sizes.tolist()):
        pieces = -(-size // _LARGEST)
        for piece in range(pieces):
            kept.append(cell)
            starts.append(starts[-1] + (size * (piece + 1)) // pieces - (size * piece) // pieces)
    return np.array(kept, dtype=np.int64), np.array(starts, dtype=np.int64)


def _to_bytes(vectors: Halves) -> tuple[Bytes, Vectors]:
    scales = np.maximum(np.abs(vectors).max(axis=1).astype(np.float32), 1e-6) / np.float32(127)
    codes = np.empty(vectors.shape, dtype=np.int8)
    for start in range(0, len(vectors), _ASSIGN):
        part = slice(start, start + _ASSIGN)
        codes[part] = np.rint(vectors[part].astype(np.float32) / scales[part, None])
    return codes, scales
