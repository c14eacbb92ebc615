"""Fast Downward's search libraries, lent and handed on: each holds the state of one game.

Loading one copies a file of 30 MB, and a process that has unloaded one crashes when it ends (the
copies share C++ objects). So none is ever unloaded: those not in use wait, on the package that they
belong to, for the next game of any engine in this process.
"""

from __future__ import annotations

from ctypes import c_int
from typing import Any

from dreamgym.envs.alfworld.upstream import Upstream

_MARK = "_dreamgym_idle"


def borrow_library(upstream: Upstream) -> Any:
    """Return a library that nobody uses, loading one if need be."""
    idle = _idle(upstream)
    if idle:
        return idle.pop()
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
