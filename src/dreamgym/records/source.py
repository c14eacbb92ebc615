"""JSON values out of files: lines, lists or one document, plain or gzipped, one at a time.

Knows nothing of formats. A value that cannot be read is reported with its place and the rest of
the file goes on, as far as that is possible. Memory stays below a few times `LARGEST`.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from dreamgym.errors import RecordError

LARGEST = 64 * 1024 * 1024
"""Bytes that a single record may have."""

SUFFIXES = (".json", ".jsonl", ".ndjson")
"""What is picked up in a folder (also with `.gz`); a file named outright may have any name."""

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Found:
    """A value of a file, or why there is none."""

    place: int
    """Counted from one: the line of a JSONL file, the element of a list, 1 for a whole document."""
    value: Any = None
    problem: str = ""


def files_in(path: Path) -> Iterator[Path]:
    """Yield the path itself, or the record files of a folder, sorted."""
    if not path.exists():
        raise RecordError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        name = file.name.removesuffix(".gz")
        if file.is_file() and name.endswith(SUFFIXES) and not name.startswith("."):
            yield file


def read_values(path: Path) -> Iterator[Found]:
    """Yield every JSON value of a file."""
    with _opened(path) as stream:
        start = _first_byte(stream)
        if start == b"[":
            values = _list_items(stream)
        elif start == b"{" and _is_one_document(stream):
            stream.seek(0)
            values = iter([_parsed(1, stream.read())])
        else:
            stream.seek(0)
            values = _lines(stream)
        place = 0
        try:
            for found in values:
                place = found.place
                yield found
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield Found(place + 1, problem=f"the compressed file is damaged: {error}")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        if raw.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(raw) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield raw


def _first_byte(stream: BinaryIO) -> bytes:
    """Return the first byte that is not space, and leave the stream behind it."""
    try:
        if stream.read(len(_BOM)) != _BOM:
            stream.seek(0)
        byte = stream.read(1)
        while byte and byte.isspace():
            byte = stream.read(1)
        return byte
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return b""


def _is_one_document(stream: BinaryIO) -> bool:
    """Tell a document over several lines from a file of lines."""
    stream.seek(0)
    try:
        line = stream.readline(LARGEST)
        if not _parsed(1, line).problem:
            return False
        rest = stream.read(LARGEST)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return len(rest) < LARGEST and not _parsed(1, line + rest).problem


def _lines(stream: BinaryIO) -> Iterator[Found]:
    number = 0
    while line := stream.readline(LARGEST):
        number += 1
        if len(line) == LARGEST and not line.endswith(b"\n"):
            while (line := stream.readline(LARGEST)) and not line.endswith(b"\n"):
                pass
            yield Found(number, problem=f"the line is longer than {LARGEST:,} bytes")
        elif line.removeprefix(_BOM).strip():
            yield _parsed(number, line)


def _parsed(place: int, data: bytes) -> Found:
    try:
        text = data.removeprefix(_BOM).decode()
        return Found(place, json.loads(text, parse_constant=_refuse))
    except UnicodeDecodeError as error:
        return Found(place, problem=f"not UTF-8: {error.reason} at byte {error.start}")
    except (ValueError, RecursionError) as error:
        return Found(place, problem=f"not JSON: {error}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _list_items(stream: BinaryIO) -> Iterator[Found]:
    """Yield the elements of a list whose opening bracket was just read."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    # Bytes that are no UTF-8 survive as half characters, to be blamed on their element alone.
    unpack = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text, at, place, ended = "", 0, 0, False
    while True:
        at = _skip_space(text, at, "," if place else "")
        if text[at : at + 1] == "]":
            if text[at + 1 :].strip() or any(chunk.strip() for chunk in _chunks(stream)):
                yield Found(place + 1, problem="there is more behind the end of the list")
            return
        try:
            value, end = decoder.raw_decode(text, at)
            behind = text[_skip_space(text, end) :][:1]
            # Only what follows tells a whole number from the first digits of one.
            whole, problem = behind in (",", "]") or (ended and not behind), "',' expected"
        except (ValueError, RecursionError) as error:
            whole, problem = False, str(error)
        if whole:
            place += 1
            yield _checked(place, value, text[at:end])
            at = end
            continue
        if ended or len(text) - at > LARGEST:
            yield Found(place + 1, problem=f"not JSON, the list cannot be read on: {problem}")
            return
        # Twice as much each time, so that a long element is not parsed again and again.
        data = stream.read(max(_CHUNK, len(text) - at))
        ended = not data
        text, at = text[at:] + unpack.decode(data, final=ended), 0


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while data := stream.read(_CHUNK):
        yield data


def _skip_space(text: str, at: int, extra: str = "") -> int:
    while at < len(text) and (text[at].isspace() or text[at] in extra):
        at += 1
    return at


def _checked(place: int, value: Any, text: str) -> Found:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return Found(place, problem=f"not UTF-8: {error.reason}")
    return Found(place, value)
