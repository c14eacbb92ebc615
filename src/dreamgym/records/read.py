"""Trajectories out of files: `detect` the format, `read_records` one by one, bad ones included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import RecordError
from dreamgym.records.dialogue import Defaults
from dreamgym.records.formats import READABLE, choose_readable, sniff
from dreamgym.records.source import Found, files_in, read_values
from dreamgym.types import Split, Trajectory

_LOOK_AT = 20
"""Records of a file that `detect` looks at before it goes on to the next file."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read."""

    file: Path
    place: int
    """The line of a JSONL file, the element of a list; counted from one."""
    reason: str

    def __str__(self) -> str:
        """Return `file:place: reason`."""
        return f"{self.file}:{self.place}: {self.reason}"


def detect(path: Path) -> str:
    """Return the format of a file or folder, told by the content of its first readable record.

    Raises `RecordError` where nothing is recognised.
    """
    problem = "there is nothing in it"
    for file in files_in(path):
        for looked, found in enumerate(read_values(file)):
            try:
                return _recognise(_object(found))
            except RecordError as error:
                problem = f"{file}:{found.place}: {error}"
            if looked >= _LOOK_AT:
                break
    raise RecordError(f"{path}: no record of a known format: {problem}")


def read_records(
    path: Path, *, format: str | None = None, env: str | None = None, split: Split = Split.TRAIN
) -> Iterator[Trajectory | BadRecord]:
    """Yield every trajectory of a file or folder, and a `BadRecord` for each that is none.

    Args:
        path: JSONL, a JSON list or one JSON document, plain or gzipped; or a folder of such files.
        format: One of the readable `FORMATS`; without it every record is recognised by itself.
        env: The environment of records of other tools, whatever they call it themselves.
        split: The split of records of other tools. Our own records know theirs, as they know `env`.
    """
    if format is not None:
        choose_readable(format)
    defaults = Defaults(env, split)
    for file in files_in(path):
        for found in read_values(file):
            try:
                yield _read(found, format, defaults)
            except RecordError as error:
                yield BadRecord(file, found.place, str(error))
            except RecursionError:
                yield BadRecord(file, found.place, "it is nested too deeply")


def _read(found: Found, format: str | None, defaults: Defaults) -> Trajectory:
    record = _object(found)
    read = choose_readable(format or _recognise(record)).read
    assert read is not None
    return read(record, defaults)


def _object(found: Found) -> dict[str, Any]:
    if found.problem:
        raise RecordError(found.problem)
    if not isinstance(found.value, dict):
        raise RecordError(f"a record is a JSON object, this is a {type(found.value).__name__}")
    return found.value


def _recognise(record: dict[str, Any]) -> str:
    name = sniff(record)
    if name is None:
        keys = ", ".join(sorted(record)[:8]) or "none"
        raise RecordError(f"no format has these keys: {keys}; readable: {', '.join(READABLE)}")
    return name
