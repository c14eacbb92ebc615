"""One run, one folder. Never overwritten, resumed only on request.

- `config.toml`: every setting, resolved
- `run.json`: what made it: version, command, config digest
- `events.jsonl`: what happened, in order
- `metrics.jsonl`: numbers, one line per step
- `episodes.jsonl`, `episodes/`: trajectories to read, where they are not experience to keep
- `experience.sqlite`: the run's own experience store
- `memory.sqlite`: what a dream remembers with that remembers what is dreamt in it
- `result.json`: written at the end
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, TypeVar

from dreamgym.errors import OtherSettings, RunDirError
from dreamgym.files import write_atomically
from dreamgym.runs.lines import LineWriter
from dreamgym.types import digest

MEMORY = "memory.sqlite"
T = TypeVar("T")


class RunDir:
    """An open run directory. Holds the lock that keeps a second process out."""

    def __init__(self, path: Path, *, lock: int, fresh: bool) -> None:
        self.path = path
        self._fresh = fresh
        self._lock = lock
        self._events = LineWriter(path / "events.jsonl")
        self._metrics = LineWriter(path / "metrics.jsonl")

    @property
    def store_path(self) -> Path:
        """Where the run's own experience store lies."""
        return self.path / "experience.sqlite"

    @property
    def result_path(self) -> Path:
        """Where the result is written."""
        return self.path / "result.json"

    def event(self, name: str, **details: Any) -> None:
        """Append an event."""
        self._events.write({"event": name, **details})

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Append the numbers of one step, under flat `area/name` keys."""
        self._metrics.write({"step": step, **values})

    def result(self, values: Mapping[str, Any]) -> None:
        """Write the result, replacing an earlier one as a whole."""
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(self.result_path, text + "\n")

    def begin(self) -> None:
        """Say that work begins: from now on there is something to keep."""
        self._fresh = False

    def discard(self) -> None:
        """Remove a run that was started just now and could not begin; any other stays."""
        if self._fresh:
            shutil.rmtree(self.path)

    def close(self) -> None:
        """Close the files and let go of the lock."""
        self._events.close()
        self._metrics.close()
        os.close(self._lock)


def open_run(
    path: Path,
    *,
    config: str,
    about: Mapping[str, str],
    resume: bool,
    resumable: bool = True,
    may_change: AbstractSet[str] = frozenset(),
    defaults: str = "",
) -> RunDir:
    """Start a run in a new directory, or continue the one that is there if `resume` is set.

    Without `resume` an existing run is refused and not touched. A run that another command made,
    or that was made with other settings, is refused in any case, naming what differs; only settings
    in `may_change`, by their dotted names, may be others now. A setting that is younger than the
    run had what it has in `defaults`, a whole config. Where runs of the command cannot be continued
    at all (`resumable`), nobody is told to.
    """
    if path.exists() and not path.is_dir():
        raise RunDirError(f"{path} is a file; choose another directory for the run")
    if _is_run(path):
        if not resume:
            advice = "add --resume to continue it, or choose" if resumable else "choose"
            raise RunDirError(f"{path} holds a run: {advice} another directory with --out")
        return _continue_run(
            path, config=config, about=about, may_change=may_change, defaults=defaults
        )
    if path.is_dir() and not all(_left_by_a_killed_start(item) for item in path.iterdir()):
        raise RunDirError(f"{path} holds other files; choose an empty directory with --out")
    return _start_run(path, config=config, about=about)


def _left_by_a_killed_start(path: Path) -> bool:
    unfinished = path.name.startswith((".config.toml.", ".run.json."))
    return unfinished or path.name in (".lock", "events.jsonl", "metrics.jsonl", "config.toml")


def _start_run(path: Path, *, config: str, about: Mapping[str, str]) -> RunDir:
    path.mkdir(parents=True, exist_ok=True)
    run = RunDir(path, lock=_lock(path), fresh=True)
    record = {"config_digest": digest(config), **about}
    write_atomically(path / "config.toml", config)
    # Last, because this file is what makes the directory a run.
    write_atomically(path / "run.json", json.dumps(record, indent=2) + "\n")
    run.event("started", **record)
    return run


def remove_run(path: Path, *, command: str) -> None:
    """Remove a run of a command, if there is one; anything else, and one in use, is refused."""
    if not _is_run(path):
        return
    _check_command(path, command)
    lock = _lock(path)
    try:
        shutil.rmtree(path)
    finally:
        os.close(lock)


def _check_command(path: Path, wanted: str) -> None:
    found = _command_of(_read(path / "run.json", json.loads))
    if found and wanted and found != wanted:
        raise RunDirError(
            f"{path} is a run of `dreamgym {found}`, not of `dreamgym {wanted}`: choose another "
            "directory with --out"
        )


def _command_of(about: Mapping[str, str]) -> str:
    """Return which command made a run; nothing where its record does not tell."""
    words = shlex.split(about.get("command", ""))
    return words[1] if len(words) > 1 else ""


def _read(path: Path, load: Callable[[str], T]) -> T:
    try:
        return load(path.read_text("utf-8"))
    except ValueError as error:
        raise RunDirError(f"{path} is damaged ({error}): restore it, or begin a new run") from error


def _continue_run(
    path: Path,
    *,
    config: str,
    about: Mapping[str, str],
    may_change: AbstractSet[str],
    defaults: str,
) -> RunDir:
    _check_command(path, _command_of(about))
    stored = _read(path / "config.toml", str)
    changed = _differences({**_settings(defaults), **_settings(stored)}, _settings(config))
    unwelcome = [words for name, words in changed.items() if name not in may_change]
    if unwelcome:
        others = f"; and {len(unwelcome) - 3} more" if len(unwelcome) > 3 else ""
        raise OtherSettings(
            f"{path} was made with other settings: {'; '.join(unwelcome[:3])}{others}. "
            "Resume with the same settings or choose another directory with --out"
        )
    run = RunDir(path, lock=_lock(path), fresh=False)
    if changed:
        write_atomically(path / "config.toml", config)
    run.event("resumed", **({"changed": list(changed.values())} if changed else {}))
    return run


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file() and (path / "config.toml").is_file()


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return what differs by dotted name, in words; another version may know other settings."""
    return {
        name: f"{name} = {new.get(name, 'not known')} (was {name} = {old.get(name, 'not known')})"
        for name in {**new, **old}
        if old.get(name) != new.get(name)
    }


def _settings(text: str) -> dict[str, str]:
    """Return the settings of a config as they are written, by dotted name."""
    found, section = {}, ""
    for line in text.splitlines():
        name, equals, value = line.partition(" = ")
        if line.startswith("["):
            section = line.strip("[]") + "."
        elif equals:
            found[section + name] = value
    return found


def _lock(path: Path) -> int:
    # flock is released by the kernel when the process dies, however it dies: no stale locks.
    descriptor = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise RunDirError(f"{path} is in use by another process") from error
    return descriptor
