"""The SQLite file: how it is opened, its tables, its transactions, and what its errors mean.

Nothing here knows what the rows are for; `store.py` does. Writers take turns (WAL mode, one short
transaction each), readers never wait and see a consistent state for as long as they look.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from dreamgym.errors import ReplayError
from dreamgym.files import enter_wal

Synchronous = Literal["normal", "full"]
"""`normal` survives a crash of any process; `full` also a power cut in the middle of a commit."""

SCHEMA = 1
_APPLICATION = 0x64676D31

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE mappers (env TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE groups (
    code INTEGER PRIMARY KEY, env TEXT NOT NULL, source TEXT NOT NULL, split TEXT NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    UNIQUE (env, source, split)
);
CREATE TABLE trajectories (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    grp INTEGER NOT NULL REFERENCES groups (code),
    task_id TEXT NOT NULL,
    body BLOB
);
CREATE INDEX trajectories_group ON trajectories (grp);
CREATE INDEX trajectories_task ON trajectories (task_id);
CREATE TABLE transitions (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL UNIQUE,
    grp INTEGER NOT NULL,
    dreamed INTEGER NOT NULL,
    trajectory INTEGER NOT NULL REFERENCES trajectories (seq),
    step INTEGER NOT NULL,
    also INTEGER,
    also_step INTEGER,
    count INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX transitions_trajectory ON transitions (trajectory, step);
CREATE INDEX transitions_stalest ON transitions (dreamed, seen);
CREATE TABLE vectors (row INTEGER PRIMARY KEY, grp INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE TABLE removals (seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL);
"""
# trajectories.body is NULL once a dream was evicted: its id stays known, its content is gone.
# transitions.trajectory/step is the first sighting, also/also_step the first one in another
# trajectory, so that leaving one trajectory out never hides what another one saw as well.
# removals lists evicted rows for a while, so that other processes can drop them from memory.
# groups.held counts the transitions of a group.
# transitions.seen is the latest trajectory that showed the step: eviction takes the stalest first.


class Database:
    """One connection to one store file. Threads share it by a lock, processes open their own."""

    def __init__(
        self, path: Path, *, synchronous: Synchronous = "normal", wait_seconds: float = 60.0
    ) -> None:
        self.path = path
        self.synchronous: Synchronous = synchronous
        self._wait = wait_seconds
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._frozen = False
        with explained(path):
            self._connection = sqlite3.connect(
                path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
        try:
            with explained(path):
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run(f"PRAGMA synchronous = {self.synchronous}")
        run("PRAGMA cache_size = -65536")
        run("PRAGMA temp_store = memory")
        # Before anything is changed: a file that is somebody else's stays as it is.
        # Tables first: who makes a store makes them and the mark of it in one transaction.
        if self._holds_tables() and run("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise ReplayError(f"{self.path} is a database, but not an experience store")
        enter_wal(self._connection, patience=self._wait)
        if run("PRAGMA user_version").fetchone()[0] == 0:
            self._create()
        version = run("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA:
            raise ReplayError(
                f"{self.path} has layout {version}, this DreamGym reads {SCHEMA}; "
                f"export it with the DreamGym that wrote it and import it here"
            )

    def _holds_tables(self) -> bool:
        found: int = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        return found > 0

    def _create(self) -> None:
        with self.writing() as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != 0:
                return  # another process was faster
            for statement in _TABLES.split(";"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that holds the only write lock; it happens wholly or not at all."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read several things as they were at one moment."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise ReplayError(
                f"{self.path} was opened in another process; open it again after fork"
            )
        with self._lock, explained(self.path):
            if self._frozen and begin == "BEGIN":  # already inside the one long transaction
                yield self._connection
                return
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def freeze(self) -> None:
        """Begin a read that lasts until `close`: later writes of others stay unseen."""
        with self._lock, explained(self.path):
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT count(*) FROM meta").fetchone()
            self._frozen = True

    def close(self) -> None:
        """Close the connection; every committed row is on disk already."""
        with self._lock:
            self._connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors to `ReplayError`s that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors of the driver itself (such as a closed connection) carry no code.
        code = getattr(error, "sqlite_errorcode", None)
        advice = _ADVICE.get(code & 0xFF if code is not None else -1, "")
        raise ReplayError(f"{path}: {error}{advice}") from error


_ADVICE = {
    sqlite3.SQLITE_FULL: "; nothing of this change was stored: make room and do it again",
    sqlite3.SQLITE_BUSY: "; another process has been writing for too long: end it or try again",
    sqlite3.SQLITE_NOTADB: "; this file is not an experience store: give another path",
    sqlite3.SQLITE_CORRUPT: "; the file is damaged: restore a copy, or try `sqlite3 FILE .recover`",
    sqlite3.SQLITE_CANTOPEN: "; does its folder exist, and may you write there?",
    sqlite3.SQLITE_READONLY: "; you may not write there",
    sqlite3.SQLITE_IOERR: "; the disk failed or is full: nothing of this change was stored",
}
