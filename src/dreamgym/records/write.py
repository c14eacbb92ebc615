"""Trajectories into files: whole or not at all, and never over another file unless told."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from dreamgym.errors import RecordError
from dreamgym.records.formats import choose_format
from dreamgym.records.verl import write_parquet
from dreamgym.types import Trajectory


def export_records(
    trajectories: Iterable[Trajectory], path: Path, *, format: str, overwrite: bool = False
) -> int:
    """Write trajectories to a file and return how many rows it has.

    Rows are trajectories, but steps for `trl` and tasks for `verl`. The file is JSONL; with a name
    that ends in `.json` it is a JSON list (ATIF: the one document), with `.gz` it is compressed.

    Raises:
        RecordError: The file is there already and `overwrite` is false, or there is nothing to
            write.
        ConfigError: There is no such format.
    """
    choose_format(format)  # Before anything is touched.
    _refuse_existing(path, overwrite=overwrite)
    with _replacing(path, overwrite=overwrite) as temporary:
        count = _write(trajectories, path, temporary, format=format)
        if not count:
            raise RecordError(
                f"there is nothing to write: {path} was left as it was. `dreamgym replay stats` "
                "says what a store holds"
            )
    return count


def _write(trajectories: Iterable[Trajectory], path: Path, temporary: Path, *, format: str) -> int:
    write = choose_format(format).write
    if write is None:
        return write_parquet(trajectories, temporary)
    rows = (row for trajectory in trajectories for row in write(trajectory))
    with _opened(temporary, compressed=path.suffix == ".gz") as file:
        return _layout(path, format)(file, rows)


def _layout(path: Path, format: str) -> Callable[[IO[bytes], Iterable[dict[str, Any]]], int]:
    if path.name.removesuffix(".gz").endswith(".json"):
        return _write_document if format == "atif" else _write_list
    return _write_lines


def _dumped(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _write_lines(file: IO[bytes], rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        file.write(_dumped(row) + b"\n")
        count += 1
    return count


def _write_list(file: IO[bytes], rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    file.write(b"[")
    for row in rows:
        file.write((b",\n" if count else b"\n") + _dumped(row))
        count += 1
    file.write(b"\n]\n")
    return count


def _write_document(file: IO[bytes], rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        count += 1
        if count > 1:
            raise RecordError("an ATIF document holds one trajectory; for more, name it .jsonl")
        file.write(_dumped(row) + b"\n")
    return count


@contextmanager
def _opened(path: Path, *, compressed: bool) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if not compressed:
            yield raw
        else:
            # Without a time stamp, so that the same records give the same file.
            with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed:
                yield cast(IO[bytes], packed)
        raw.flush()
        os.fsync(raw.fileno())


@contextmanager
def _replacing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a name to write to; what was written takes the file's place only if nothing failed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        _refuse_existing(path, overwrite=overwrite)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _refuse_existing(path: Path, *, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise RecordError(f"{path} is there already; choose another name, or add --overwrite")
