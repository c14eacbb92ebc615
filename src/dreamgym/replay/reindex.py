"""Make all vectors of a store anew, with another embedder or another weight of the action.

New vectors grow in a table beside the old ones, batch by batch, so that an interrupted job goes on
where it stopped and others can use the store meanwhile; one last transaction swaps the tables.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from dreamgym.errors import ReplayError
from dreamgym.protocols import Embedder
from dreamgym.replay import store as sql
from dreamgym.replay.database import Database
from dreamgym.replay.key import ACTION_WEIGHT, KeyEncoder
from dreamgym.replay.packing import unpack_texts

_AT_ONCE = 512


def reindex(path: Path, *, embedder: Embedder, action_weight: float = ACTION_WEIGHT) -> int:
    """Embed every transition again and return how many there are."""
    if not path.exists():
        raise ReplayError(f"no experience store at {path}")
    encoder = KeyEncoder(embedder, action_weight=action_weight)
    database = Database(path)
    try:
        with database.writing() as connection:
            _begin(connection, encoder.digest)
        while True:
            with database.reading() as connection:
                rows, vectors = _next_batch(connection, encoder)
            with database.writing() as connection:
                _check_still_ours(connection, path, encoder.digest)
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors_next SELECT row, grp, ? FROM transitions"
                    " WHERE row = ?",
                    ((vector.tobytes(), row) for row, vector in zip(rows, vectors, strict=True)),
                )
                if len(rows) < _AT_ONCE:
                    # Nobody can add while we hold the lock: what is left now is the last of it.
                    _finish(connection, encoder)
                    return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
    finally:
        database.close()


def _begin(connection: sqlite3.Connection, target: str) -> None:
    if sql.read_meta(connection).get("reindex") != target:
        connection.execute("DROP TABLE IF EXISTS vectors_next")
        connection.execute(
            "CREATE TABLE vectors_next"
            " (row INTEGER PRIMARY KEY, grp INTEGER NOT NULL, vector BLOB NOT NULL)"
        )
        sql.write_meta(connection, reindex=target)


def _check_still_ours(connection: sqlite3.Connection, path: Path, target: str) -> None:
    if sql.read_meta(connection).get("reindex") != target:
        raise ReplayError(f"{path} is being reindexed by another process with another embedder")


def _next_batch(
    connection: sqlite3.Connection, encoder: KeyEncoder
) -> tuple[list[int], np.ndarray[tuple[int, ...], np.dtype[np.float16]]]:
    found = connection.execute(
        "SELECT row, body FROM transitions"
        " WHERE row > ifnull((SELECT max(row) FROM vectors_next), 0) ORDER BY row LIMIT ?",
        (_AT_ONCE,),
    ).fetchall()
    texts = [unpack_texts(body) for _, body in found]
    keys = encoder.encode([state for state, _ in texts], [action for _, action in texts])
    return [row for row, _ in found], keys.astype(np.float16)


def _finish(connection: sqlite3.Connection, encoder: KeyEncoder) -> None:
    while True:
        rows, vectors = _next_batch(connection, encoder)
        if not rows:
            break
        connection.executemany(
            "INSERT INTO vectors_next SELECT row, grp, ? FROM transitions WHERE row = ?",
            ((vector.tobytes(), row) for row, vector in zip(rows, vectors, strict=True)),
        )
    connection.execute("DELETE FROM vectors_next WHERE row NOT IN (SELECT row FROM transitions)")
    connection.execute("DROP TABLE vectors")
    connection.execute("ALTER TABLE vectors_next RENAME TO vectors")
    connection.execute("DELETE FROM meta WHERE name = 'reindex'")
    sql.write_meta(connection, embedder=encoder.digest)
