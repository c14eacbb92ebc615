"""Append-only files of JSON lines that survive a crash in the middle of a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class LineWriter:
    """Appends one JSON object per line; each line is on its way to disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(path)
        # Unbuffered: what a full disk refused must not be tried again when the file is closed.
        self._file = path.open("ab", buffering=0)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        left = memoryview(line.encode())
        while left:
            left = left[self._file.write(left) :]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file; a last line that is still being written is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that has no end: its writer was killed before it was acknowledged."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)
