"""The cells of a large store as a file beside it: quick to open, and never needed.

Everything in it can be made again from the store, so whatever is wrong with it (missing, torn,
damaged, of another store) only means that it is not used. It is written wholly or not at all, and
read through memory mapping.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dreamgym.errors import ReplayError
from dreamgym.replay.cells import Cells

logger = logging.getLogger(__name__)

_MAGIC = b"dreamgym cells 1\n"
_ALIGN = 64
_ARRAYS = {
    "centres": np.float32,
    "groups": np.int64,
    "starts": np.int64,
    "rows": np.int64,
    "scales": np.float32,
    "codes": np.int8,
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which content of which store an index was made from."""

    store: str
    """The store's own name for itself, drawn when it was made."""
    embedder: str
    last_row: int
    last_key: str
    """The duplicate key of the last row: tells a store from an older copy of itself."""
    removals: int
    """The last removal that was taken into account."""
    fitted: int
    """How many rows there were when the cells' centres were chosen."""


def sidecar_path(store: Path) -> Path:
    """Return the place of a store's sidecar."""
    return store.with_name(store.name + ".cells")


def save(path: Path, stamp: Stamp, cells: Cells) -> None:
    """Write the cells. Failing to is no harm, so it is only logged."""
    arrays = [np.ascontiguousarray(getattr(cells, name), kind) for name, kind in _ARRAYS.items()]
    check = 0
    for array in arrays:
        check = zlib.crc32(array.data, check)
    header = {
        "stamp": asdict(stamp),
        "shapes": [array.shape for array in arrays],
        "check": check,
    }
    _sweep(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(_MAGIC + json.dumps(header).encode() + b"\n")
            for array in arrays:
                file.write(b"\0" * (-file.tell() % _ALIGN))
                file.write(array.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        logger.warning("could not write %s (%s); it will be made again", path, error)
        temporary.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what writers left behind that were killed an hour ago or longer."""
    for torn in path.parent.glob(f".{path.name}.*"):
        with suppress(FileNotFoundError):
            if time.time() - torn.stat().st_mtime > 3600:
                torn.unlink()


def load(path: Path) -> tuple[Stamp, Cells] | None:
    """Read the cells, or return None, with a warning if there is a file but it is no good."""
    try:
        with path.open("rb") as file:
            return _read(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, ReplayError) as error:
        logger.warning("%s cannot be used (%s); it will be made again", path, error)
        return None


def _read(content: mmap.mmap) -> tuple[Stamp, Cells]:
    if content[: len(_MAGIC)] != _MAGIC:
        raise ReplayError("it does not begin as one")
    end = content.find(b"\n", len(_MAGIC)) + 1
    header = json.loads(content[len(_MAGIC) : end])
    place, check = end, 0
    arrays = {}
    for (name, kind), shape in zip(_ARRAYS.items(), header["shapes"], strict=True):
        place += -place % _ALIGN
        array = np.frombuffer(content, kind, count=int(np.prod(shape)), offset=place)
        check = zlib.crc32(array.data, check)
        arrays[name] = array.reshape(shape)
        place += array.nbytes
    if check != header["check"]:
        raise ReplayError("its checksum is wrong")
    return Stamp(**header["stamp"]), Cells(**arrays)
