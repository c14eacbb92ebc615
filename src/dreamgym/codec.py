"""Values to JSON and back: one versioned line per record, exact round trips, no unknown keys.

The types stay free of third-party code; pydantic reads and writes them here and nowhere else.
Fields at their default are left out, so that files stay small and old readers say what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from dreamgym.errors import RecordError
from dreamgym.types import Completion, Task, Trajectory, Transition

SCHEMA_VERSION = 1
"""Raised when a stored record changes shape; readers name both versions when they differ."""

KINDS: dict[str, type] = {
    "task": Task,
    "transition": Transition,
    "trajectory": Trajectory,
    "completion": Completion,
}
"""What may stand on a line of its own."""

T = TypeVar("T")


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[name])


def _name(kind: type) -> str:
    for name, known in KINDS.items():
        if known is kind:
            return name
    raise TypeError(f"{kind.__name__} is not a record; records are {', '.join(KINDS)}")


@cache
def _head(name: str) -> bytes:
    return f'{{"v":{SCHEMA_VERSION},"kind":"{name}",'.encode()


def encode(value: object) -> str:
    """Return the value as one line of JSON, without the newline."""
    name = _name(type(value))
    body = _adapter(name).dump_json(value, exclude_defaults=True)
    return (_head(name) + body[1:]).decode()


def decode(line: str | bytes, kind: type[T]) -> T:
    """Read one line back. Raises `RecordError` with the path of the first thing that is wrong."""
    raw = line.encode() if isinstance(line, str) else line
    name = _name(kind)
    head = _head(name)
    # What `encode` wrote is validated straight from its bytes; other orders of keys are re-sorted.
    body = b"{" + raw[len(head) :] if raw.startswith(head) else _strip_head(raw, name)
    try:
        return cast(T, _adapter(name).validate_json(body, strict=True))
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in (name, *first["loc"]))
        raise RecordError(f"{path}: {first['msg']}") from error


def _strip_head(raw: bytes, name: str) -> bytes:
    try:
        record = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise RecordError(f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise RecordError(f"a record is a JSON object, this is a {type(record).__name__}")
    version, found = record.pop("v", None), record.pop("kind", None)
    if version != SCHEMA_VERSION:
        raise RecordError(f"record version {version!r}, this DreamGym reads {SCHEMA_VERSION}")
    if found != name:
        raise RecordError(f"expected a {name}, found {found!r}")
    return to_json(record)


def write_lines(path: Path, values: Iterable[object]) -> int:
    """Write values as JSONL and return how many there were."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for value in values:
            file.write(encode(value) + "\n")
            count += 1
    return count


def read_lines(path: Path, kind: type[T], *, growing: bool = False) -> Iterator[T]:
    """Read JSONL back; an error names file and line.

    Of a file that may be `growing`, a last line without its end is left out.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and (line.endswith(b"\n") or not growing):
                try:
                    yield decode(line, kind)
                except RecordError as error:
                    raise RecordError(f"{path}:{number}: {error}") from error
