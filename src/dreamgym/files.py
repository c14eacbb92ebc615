"""Durable files: writes that happen wholly or not at all, SQLite for many, the place for caches.

Nothing here knows what the files mean.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from pathlib import Path


def cache_dir(name: str) -> Path:
    """Return (and make) a folder for things that can always be made again.

    `DREAMGYM_CACHE` moves it; otherwise it lies under the user's cache folder.
    """
    chosen = os.environ.get("DREAMGYM_CACHE")
    base = (
        Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dreamgym"
    )
    folder = base.expanduser() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file's content so that readers and crashes see the old or the new, never a mix."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is for its owner alone; this one is for whom new files are for.
        Path(temporary).chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return which rights new files lack; there is no way to ask but to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def enter_wal(connection: sqlite3.Connection, *, patience: float) -> None:
    """Let readers of a SQLite file go on while somebody writes, whoever opens it at the same time.

    SQLite's own time-out does not hold while the journal mode changes: it says at once that the
    file is locked. So the waiting is done here, for `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
