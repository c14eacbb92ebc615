"""A store copied as it is now, so that what learns on can add to the copy."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from dreamgym.errors import ReplayError
from dreamgym.replay.database import explained


def copy_store(store: Path, copy: Path) -> None:
    """Copy a store as it is at this moment, even while others write to it.

    The copy is there as a whole or not at all; one that is there already is replaced.
    """
    if not store.is_file():
        raise ReplayError(f"there is no experience store at {store} to copy")
    copy.parent.mkdir(parents=True, exist_ok=True)
    half = copy.with_name(f"{copy.name}.part")
    half.unlink(missing_ok=True)
    try:
        with (
            explained(store),
            closing(sqlite3.connect(store)) as old,
            closing(sqlite3.connect(half)) as new,
        ):
            old.backup(new)
    except ReplayError:
        half.unlink(missing_ok=True)
        raise
    for beside in ("-wal", "-shm"):
        # What a killed writer left unwritten belongs to the store that is replaced.
        copy.with_name(f"{copy.name}{beside}").unlink(missing_ok=True)
    os.replace(half, copy)
