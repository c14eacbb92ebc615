"""Approximate nearest neighbours for large stores: vectors sorted into cells, few of them read.

Each group's vectors are clustered; a query compares itself with the cells' centres, reads the
nearest cells until it has seen a few thousand vectors in eight bits, and returns the best as a
shortlist to be scored exactly by the caller. Needs nothing but NumPy; never changes once built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Vectors
from dreamgym.replay.scan import Rows, dots
from dreamgym.types import derive_seed

Bytes = NDArray[np.int8]
Halves = NDArray[np.float16]

CELL = 200
"""Vectors per cell, on average."""
_LARGEST = 4 * CELL
_MOST = 8192
"""Cells of a group, at most: beyond, they grow larger, or building would take too long."""
_SAMPLE = 32
"""Vectors per centre that the centres are fitted to."""
_ROUNDS = 5
_ASSIGN = 16_384


@dataclass(frozen=True, slots=True)
class Cells:
    """Vectors in eight bits, cell by cell."""

    centres: Vectors
    groups: Rows
    """The group that each cell belongs to, ascending."""
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
        spans = self._spans(visible)
        if not spans:
            return np.empty(0, dtype=np.int64)
        nearness = np.empty(sum(end - begin for begin, end in spans), dtype=np.float32)
        place = 0
        for begin, end in spans:
            dots(self.centres[begin:end], query, out=nearness[place : place + end - begin])
            place += end - begin
        ranked = np.concatenate([np.arange(*span) for span in spans])[np.argsort(-nearness)]
        seen = np.cumsum(self.starts[ranked + 1] - self.starts[ranked])
        parts: list[tuple[Rows, Vectors]] = []
        found = first = 0
        while first < len(ranked) and (first == 0 or found < keep):
            until = int(np.searchsorted(seen, read if first == 0 else 2 * seen[first - 1])) + 1
            for part in self._read(ranked[first:until].tolist(), query, alive):
                found += len(part[0])
                parts.append(part)
            first = until
        rows = np.concatenate([part for part, _ in parts])
        if len(rows) <= keep:
            return rows
        scores = np.concatenate([part for _, part in parts])
        return rows[np.argpartition(scores, -keep)[-keep:]]

    def _spans(self, groups: Collection[int]) -> list[tuple[int, int]]:
        """Return where the cells of some groups begin and end."""
        codes = np.array(sorted(groups), dtype=np.int64)
        begins = np.searchsorted(self.groups, codes, side="left").tolist()
        ends = np.searchsorted(self.groups, codes, side="right").tolist()
        return [span for span in zip(begins, ends, strict=True) if span[0] < span[1]]

    def _read(
        self, cells: list[int], query: Vectors, alive: NDArray[np.bool_] | None
    ) -> Iterator[tuple[Rows, Vectors]]:
        """Yield the rows of each cell with their scores."""
        spans = [(int(self.starts[cell]), int(self.starts[cell + 1])) for cell in cells]
        # One piece of memory for all cells stays in the processor's cache.
        room = np.empty((max(end - begin for begin, end in spans), len(query)), dtype=np.float32)
        for begin, end in spans:
            wide = room[: end - begin]
            np.copyto(wide, self.codes[begin:end])
            scores = np.empty(end - begin, dtype=np.float32)
            dots(wide, query, out=scores)
            scores *= self.scales[begin:end]
            rows = self.rows[begin:end]
            if alive is not None:
                rows, scores = rows[alive[begin:end]], scores[alive[begin:end]]
            yield rows, scores


def build(groups: Mapping[int, tuple[Rows, Halves]]) -> Cells:
    """Sort the vectors of each group into cells."""
    return _joined(
        [_build_group(code, *groups[code]) for code in sorted(groups) if len(groups[code][0])]
    )


def extend(
    cells: Cells, groups: Mapping[int, tuple[Rows, Halves]], *, alive: NDArray[np.bool_] | None
) -> Cells:
    """Drop the dead and sort new vectors into the cells there are; groups without any get some."""
    old = set(cells.groups.tolist())
    parts = []
    for code in sorted(old | set(groups)):
        rows, vectors = groups.get(code, (cells.rows[:0], np.empty((0, 0), dtype=np.float16)))
        if code in old:
            parts.append(_grown(cells, code, rows, vectors, alive))
        elif len(rows):
            parts.append(_build_group(code, rows, vectors))
    return _joined(parts)


def _joined(parts: Sequence[Cells]) -> Cells:
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
    count = max(1, min(len(rows) // CELL, _MOST))
    rng = np.random.default_rng(derive_seed("cells", code, len(rows)))
    sample = rng.permutation(len(rows))[: count * _SAMPLE]
    centres = _fit(vectors[np.sort(sample)].astype(np.float32), count, rng)
    homes = _nearest(vectors, centres)
    by_cell = np.argsort(homes, kind="stable")
    sizes = np.bincount(homes, minlength=count)
    kept, starts = _cut(sizes, largest=max(_LARGEST, 4 * len(rows) // count))
    codes, scales = _to_bytes(vectors[by_cell])
    return Cells(
        centres=centres[kept],
        groups=np.full(len(kept), code, dtype=np.int64),
        starts=starts,
        rows=rows[by_cell],
        scales=scales,
        codes=codes,
    )


def _grown(
    cells: Cells, code: int, rows: Rows, vectors: Halves, alive: NDArray[np.bool_] | None
) -> Cells:
    """Return one group of the cells without the dead and with new vectors."""
    first, last = np.searchsorted(cells.groups, [code, code + 1]).tolist()
    centres = cells.centres[first:last]
    span = slice(int(cells.starts[first]), int(cells.starts[last]))
    kept = np.ones(span.stop - span.start, dtype=np.bool_) if alive is None else alive[span]
    homes = np.repeat(np.arange(last - first), np.diff(cells.starts[first : last + 1]))[kept]
    old_codes, old_scales = cells.codes[span][kept], cells.scales[span][kept]
    if len(rows):
        codes, scales = _to_bytes(vectors)
        homes = np.concatenate([homes, _nearest(vectors, centres)])
        old_codes = np.concatenate([old_codes, codes])
        old_scales = np.concatenate([old_scales, scales])
    by_cell = np.argsort(homes, kind="stable")
    sizes = np.bincount(homes, minlength=len(centres))
    return Cells(
        centres=centres,
        groups=cells.groups[first:last],
        starts=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]),
        rows=np.concatenate([cells.rows[span][kept], rows])[by_cell],
        scales=old_scales[by_cell],
        codes=old_codes[by_cell],
    )


def _nearest(vectors: NDArray[np.floating], centres: Vectors) -> Rows:
    """Return the centre that each vector belongs to."""
    parts = [
        np.argmax(vectors[start : start + _ASSIGN].astype(np.float32) @ centres.T, axis=1)
        for start in range(0, len(vectors), _ASSIGN)
    ]
    return np.concatenate(parts)


def _fit(sample: Vectors, count: int, rng: np.random.Generator) -> Vectors:
    """Return centres by spherical k-means."""
    centres = sample[np.sort(rng.permutation(len(sample))[:count])]
    for _ in range(_ROUNDS):
        homes = _nearest(sample, centres)
        by_cell = np.argsort(homes, kind="stable")
        present, starts = np.unique(homes[by_cell], return_index=True)
        sums = np.add.reduceat(sample[by_cell], starts, axis=0)
        lost = count - len(present)
        spare = sample[rng.integers(len(sample), size=lost)]
        centres = np.concatenate([sums, spare])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return centres


def _cut(sizes: NDArray[np.int64], *, largest: int) -> tuple[Rows, Rows]:
    """Cut large cells in pieces, so that none is slow to read; return centre and start of each."""
    kept: list[int] = []
    starts = [0]
    for cell, size in enumerate(sizes.tolist()):
        pieces = -(-size // largest)
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
