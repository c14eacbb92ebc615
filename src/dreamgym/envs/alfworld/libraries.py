"""Fast Downward's search libraries, lent and handed on: each holds the state of one game.

Loading one copies a file of 30 MB, and a process that has unloaded one crashes when it ends (the
copies share C++ objects). So none is ever unloaded: those not in use wait, on the package that they
belong to, for the next game of any engine in this process.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import c_int
from typing import Any

from dreamgym.envs.alfworld.upstream import Upstream
from dreamgym.files import cache_dir

_MARK = "_dreamgym_idle"
_STALE = 600.0
"""Seconds after which a copy that is still there was left by a process that died."""


def borrow_library(upstream: Upstream) -> Any:
    """Return a library that nobody uses, loading one if need be."""
    idle = _idle(upstream)
    if idle:
        return idle.pop()
    with _copies_swept_up():
        library = upstream.downward.load_lib()
    # Upstream exports these two and does not declare them.
    library.get_state_id.argtypes, library.get_state_id.restype = [], c_int
    library.set_state_id.argtypes, library.set_state_id.restype = [c_int], None
    return library


def return_library(upstream: Upstream, library: Any) -> None:
    """Free what a library holds and hand it on."""
    library.cleanup()
    _idle(upstream).append(library)


def _idle(upstream: Upstream) -> list[Any]:
    package = upstream.downward
    if not hasattr(package, _MARK):
        setattr(package, _MARK, [])
    found: list[Any] = getattr(package, _MARK)
    return found


@contextmanager
def _copies_swept_up() -> Iterator[None]:
    """Let the copy be made where we can find it again, should this process be killed meanwhile."""
    folder = cache_dir("alfworld/loading")
    for left in folder.iterdir():
        with suppress(OSError):  # Another process may be sweeping, too.
            if left.stat().st_mtime < time.time() - _STALE:
                shutil.rmtree(left)
    saved = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = saved
