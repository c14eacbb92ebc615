"""The vectors of a store in memory, kept up to date with the file.

Small stores live in blocks alone and are searched exactly. Beyond `exact_limit` rows the bulk moves
to cells, kept in a sidecar file, and blocks hold what came since. What is handed out as a `View`
never changes: blocks only grow at their end, and removals make new arrays.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Vectors
from dreamgym.replay import cells as celled
from dreamgym.replay import sidecar
from dreamgym.replay.cells import Cells
from dreamgym.replay.scan import Block, Rows
from dreamgym.replay.sidecar import Stamp

logger = logging.getLogger(__name__)

EXACT_LIMIT = 200_000
"""Rows up to which every search compares them all."""

_FETCH = 8192
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class View:
    """The index at one moment."""

    blocks: Mapping[int, Block]
    """By group."""
    cells: Cells | None
    alive: NDArray[np.bool_] | None
    """Which rows of the cells were not removed; None means all."""


class VectorIndex:
    """All vectors of one store."""

    def __init__(self, path: Path, dimensions: int, *, exact_limit: int = EXACT_LIMIT) -> None:
        self._sidecar = sidecar.sidecar_path(path)
        self._dimensions = dimensions
        self._exact_limit = exact_limit
        self._forget()

    def _forget(self) -> None:
        self._cells: Cells | None = None
        self._alive: NDArray[np.bool_] | None = None
        self._places: tuple[Rows, Rows] | None = None
        self._blocks: dict[int, _Growing] = {}
        self._last_row = 0
        self._celled_row = 0
        self._removals = 0
        self._fitted = 0

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was stored, and drop what was removed, since the last call."""
        self._drop_removed(connection)
        held = int(connection.execute("SELECT ifnull(sum(held), 0) FROM groups").fetchone()[0])
        if held > self._exact_limit and self._outgrown(held):
            self._use_cells(connection, held)
        self._read_new(connection)

    def view(self) -> View:
        """Return the present state; it does not change when the index does."""
        blocks = {code: block.view() for code, block in self._blocks.items()}
        return View(blocks, self._cells, self._alive)

    def _outgrown(self, held: int) -> bool:
        """Say whether too much lies outside the cells, or is dead inside them."""
        celled = 0 if self._cells is None else len(self._cells.rows)
        dead = 0 if self._alive is None else int(len(self._alive) - self._alive.sum())
        loose = held - (celled - dead)
        return loose > max(self._exact_limit // 8, celled // 16) or dead > celled // 4

    def _use_cells(self, connection: sqlite3.Connection, held: int) -> None:
        """Take the cells from the sidecar if it is recent, else extend or make them."""
        saved = sidecar.load(self._sidecar)
        if saved is not None and self._fits(connection, saved[0]):
            self._adopt(*saved)
            self._drop_removed(connection)
            if not self._outgrown(held):
                return
        began = time.perf_counter()
        grown = self._cells is not None and held <= 2 * self._fitted
        since = self._celled_row if grown else 0
        last_row, groups = _read_groups(connection, since, self._dimensions)
        if self._cells is not None and grown:
            made, fitted = celled.extend(self._cells, groups, alive=self._alive), self._fitted
        else:
            made, fitted = celled.build(groups), held
        stamp = _stamp(connection, last_row=max(last_row, since), fitted=fitted)
        sidecar.save(self._sidecar, stamp, made)
        self._adopt(stamp, made)
        spent = time.perf_counter() - began
        logger.info("indexed %d transitions in %.1f s; see %s", held, spent, self._sidecar)

    def _fits(self, connection: sqlite3.Connection, stamp: Stamp) -> bool:
        """Say whether a saved index belongs to this store as it is now."""
        now = _stamp(connection, last_row=stamp.last_row, fitted=stamp.fitted)
        oldest = connection.execute("SELECT min(seq) FROM removals").fetchone()[0]
        complete = now.removals == stamp.removals or (
            oldest is not None and oldest <= stamp.removals + 1
        )
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'transitions'")
        same = (now.store, now.embedder) == (stamp.store, stamp.embedder)
        # The last row may have been evicted since; what a row number once meant never changes.
        same &= now.last_key in ("", stamp.last_key) and stamp.last_row <= last.fetchone()[0]
        if not (same and complete and stamp.removals <= now.removals):
            logger.warning("%s is of another time or store; it will be made again", self._sidecar)
            return False
        return stamp.last_row > self._celled_row

    def _adopt(self, stamp: Stamp, cells: Cells) -> None:
        self._forget()
        self._cells = cells
        self._last_row = self._celled_row = stamp.last_row
        self._removals = stamp.removals
        self._fitted = stamp.fitted

    def _read_new(self, connection: sqlite3.Connection) -> None:
        last_row, groups = _read_groups(connection, self._last_row, self._dimensions)
        for code, (rows, vectors) in groups.items():
            block = self._blocks.setdefault(code, _Growing(self._dimensions))
            block.append(rows, vectors)
        self._last_row = max(self._last_row, last_row)

    def _drop_removed(self, connection: sqlite3.Connection) -> None:
        oldest, newest = connection.execute("SELECT min(seq), max(seq) FROM removals").fetchone()
        if newest is None or newest <= self._removals:
            return
        if oldest > self._removals + 1 and self._last_row:
            self._forget()  # the log of removals does not reach back to what we know
        else:
            found = connection.execute(
                "SELECT row FROM removals WHERE seq > ? AND row <= ? ORDER BY row",
                (self._removals, self._last_row),
            )
            gone = np.fromiter((row for (row,) in found), dtype=np.int64)
            for block in self._blocks.values():
                block.remove(gone)
            self._kill_in_cells(gone[gone <= self._celled_row])
        self._removals = newest

    def _kill_in_cells(self, gone: Rows) -> None:
        if self._cells is None or not len(gone):
            return
        if self._places is None:
            by_row = np.argsort(self._cells.rows)
            self._places = self._cells.rows[by_row], by_row
        rows, by_row = self._places
        found = np.searchsorted(rows, gone)
        found = found[(found < len(rows))]
        found = found[np.isin(rows[found], gone)]
        alive = np.ones(len(rows), dtype=np.bool_) if self._alive is None else self._alive.copy()
        alive[by_row[found]] = False
        self._alive = alive


class _Growing:
    """A block with room at its end."""

    def __init__(self, dimensions: int) -> None:
        self._rows: Rows = _NONE
        self._vectors: Vectors = np.empty((0, dimensions), dtype=np.float32)
        self._count = 0
        self._dead: Rows = _NONE

    def append(self, rows: Rows, vectors: NDArray[np.float16]) -> None:
        end = self._count + len(rows)
        if end > len(self._rows):
            self._reserve(max(end, len(self._rows) * 3 // 2))
        self._rows[self._count : end] = rows
        self._vectors[self._count : end] = vectors
        self._count = end

    def remove(self, gone: Rows) -> None:
        rows = self._rows[: self._count]
        places = np.searchsorted(rows, gone)
        places = places[places < self._count]
        places = places[np.isin(rows[places], gone)]
        if not len(places):
            return
        self._dead = np.union1d(self._dead, places)
        if len(self._dead) > self._count // 8:
            live = np.delete(np.arange(self._count), self._dead)
            self._rows, self._vectors = rows[live], self._vectors[live]
            self._count, self._dead = len(live), _NONE

    def view(self) -> Block:
        return Block(self._rows[: self._count], self._vectors[: self._count], self._dead)

    def _reserve(self, room: int) -> None:
        rows = np.empty(room, dtype=np.int64)
        vectors = np.empty((room, self._vectors.shape[1]), dtype=np.float32)
        rows[: self._count] = self._rows[: self._count]
        vectors[: self._count] = self._vectors[: self._count]
        self._rows, self._vectors = rows, vectors


def _stamp(connection: sqlite3.Connection, *, last_row: int, fitted: int) -> Stamp:
    notes = dict(connection.execute("SELECT name, value FROM meta"))
    key = connection.execute("SELECT hex(key) FROM transitions WHERE row = ?", (last_row,))
    removals = connection.execute("SELECT ifnull(max(seq), 0) FROM removals").fetchone()[0]
    return Stamp(
        store=notes["store"],
        embedder=notes["embedder"],
        last_row=last_row,
        last_key=(key.fetchone() or ("",))[0],
        removals=removals,
        fitted=fitted,
    )


def _read_groups(
    connection: sqlite3.Connection, since: int, dimensions: int
) -> tuple[int, dict[int, tuple[Rows, NDArray[np.float16]]]]:
    """Read the vectors after a row, by group; return the last row, too."""
    parts: dict[int, list[tuple[Rows, NDArray[np.float16]]]] = {}
    cursor = connection.execute(
        "SELECT row, grp, vector FROM vectors WHERE row > ? ORDER BY row", (since,)
    )
    last_row = 0
    while batch := cursor.fetchmany(_FETCH):
        numbers, owners, blobs = zip(*batch, strict=True)
        rows, codes = np.array(numbers, dtype=np.int64), np.array(owners, dtype=np.int64)
        vectors = np.frombuffer(b"".join(blobs), dtype=np.float16).reshape(-1, dimensions)
        for code in np.unique(codes).tolist():
            mine = codes == code
            parts.setdefault(code, []).append((rows[mine], vectors[mine]))
        last_row = int(rows[-1])
    groups = {
        code: (np.concatenate([r for r, _ in part]), np.concatenate([v for _, v in part]))
        for code, part in parts.items()
    }
    return last_row, groups
