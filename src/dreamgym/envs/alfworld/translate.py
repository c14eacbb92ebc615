"""PDDL to Fast Downward's own format, kept: grounding a house costs half a second, reading it none.

Translations lie as small compressed files in the cache folder, named by what they were made from,
and bounded in number; each can be made again at any time. What is loaded is in `simulation.py`.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.envs.alfworld.upstream import Upstream, own_argv
from dreamgym.errors import EnvError
from dreamgym.files import cache_dir, write_atomically
from dreamgym.types import digest

_FILES_KEPT = 5000
"""At some 50 kB each: the whole official set, once."""
_PRUNE_EVERY = 500
_UNSOLVABLE = "Atom dummy(val1)"
"""All that the translator writes of a problem that it sees through as unsolvable."""
_STALE = 600.0
"""Seconds after which a half-written file belongs to a process that died."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A problem as Fast Downward reads it."""

    task: Any
    """The parsed PDDL: objects, types, facts at the start, actions."""
    sas: str
    """The grounded problem."""


class Translator:
    """Translates problems, and remembers the result on disk."""

    def __init__(self, upstream: Upstream, folder: Path | None = None) -> None:
        self._upstream = upstream
        self._folder = folder or cache_dir("alfworld")
        self._written = 0

    def translate(self, domain: str, problem: str) -> Translation:
        """Return the translation of a problem, from the cache if it has been made before."""
        name = digest("\x1f".join((self._upstream.version, domain, problem)), size=16)
        path = self._folder / f"{name}.sas.z"
        try:
            sas = zlib.decompress(path.read_bytes()).decode()
            os.utime(path)
        except (OSError, zlib.error, UnicodeDecodeError):
            return self._translate_anew(domain, problem, path)
        return Translation(parse_task(domain, problem), sas)

    def _translate_anew(self, domain: str, problem: str, path: Path) -> Translation:
        task, sas = ground(self._upstream, domain, problem)
        if _UNSOLVABLE in sas:
            raise EnvError("the goal of this ALFWorld problem cannot be reached; leave it out")
        with contextlib.suppress(OSError):  # A cache that cannot be written costs time only.
            write_atomically(path, zlib.compress(sas.encode(), 1))
            if self._written % _PRUNE_EVERY == 0:
                self._prune()
        self._written += 1
        return Translation(task, sas)

    def _prune(self) -> None:
        """Remove what was used longest ago, and what a killed process left half written."""
        ages = {}
        for path in self._folder.glob("*.sas.z*"):
            with contextlib.suppress(OSError):  # Another process may be pruning, too.
                ages[path] = path.stat().st_mtime
        whole = sorted((path for path in ages if path.suffix == ".z"), key=lambda path: ages[path])
        torn = (path for path in ages if ages[path] < time.time() - _STALE)
        for path in (*whole[:-_FILES_KEPT], *(path for path in torn if path.suffix != ".z")):
            path.unlink(missing_ok=True)


def ground(upstream: Upstream, domain: str, problem: str, *, prune: bool = False) -> Any:
    """Return the parsed task and its grounded text; `prune` drops what no plan can use."""
    with own_argv():
        return upstream.downward.pddl2sas(domain, problem, optimize=prune)


def parse_task(domain: str, problem: str) -> Any:
    """Return the parsed task alone, as `ground` does, in a fiftieth of the time."""
    with own_argv(), contextlib.redirect_stdout(io.StringIO()):
        from fast_downward.translate import normalize  # type: ignore[import-untyped]
        from fast_downward.translate.pddl_parser import (  # type: ignore[import-untyped]
            lisp_parser,
            parsing_functions,
        )

        trees = [lisp_parser.parse_nested_list(text.split("\n")) for text in (domain, problem)]
        task = parsing_functions.parse_task(*trees)
        normalize.normalize(task)
    return task


@contextmanager
def already_translated(upstream: Upstream, translation: Translation) -> Iterator[None]:
    """Let `PddlState`, which translates in its constructor, take what is there.

    Its second translation serves only upstream's way of planning, which `planner.py` replaces.
    """
    saved = upstream.downward.pddl2sas
    upstream.downward.pddl2sas = lambda *_args, optimize=False, **_options: (
        translation.task,
        "" if optimize else translation.sas,
    )
    try:
        yield
    finally:
        upstream.downward.pddl2sas = saved
