"""Our own JSONL: one trajectory per line, as `codec.py` writes it. Nothing is lost either way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dreamgym.codec import decode, encode
from dreamgym.records.dialogue import Defaults
from dreamgym.records.fields import Record
from dreamgym.types import Trajectory


def claims(record: Record) -> bool:
    """Say whether a record is of this format."""
    return "v" in record and "kind" in record


def read(record: Record, defaults: Defaults) -> Trajectory:
    """Read a record; it says everything about itself, so the defaults do not matter."""
    return decode(json.dumps(record), Trajectory)


def write(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield the record of a trajectory."""
    yield json.loads(encode(trajectory))
