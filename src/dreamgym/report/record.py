"""One run as a report sees it: read from its directory, finished or not, and never written to."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import RunDirError
from dreamgym.runs import read_json_lines

BY_TRIAL = "trial"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run directory holds."""

    path: Path
    kind: str
    """`trial`, `sft` or `dpo` for trainings; otherwise the command: `fit`, `audit`, `eval`."""
    about: Mapping[str, Any]
    """What made it: version, command, config digest."""
    settings: Mapping[str, Any]
    """Every setting by its dotted name."""
    metrics: tuple[Mapping[str, float], ...]
    """One row per step in order; of a step that was made again, the later row."""
    result: Mapping[str, Any] | None
    """None where the run is not finished."""

    @property
    def name(self) -> str:
        """How people call it."""
        return self.path.name

    @property
    def seed(self) -> int:
        """The seed of all its randomness."""
        return int(self.settings.get("seed", 0))

    @property
    def algo(self) -> str:
        """The algorithm of a training; the command of anything else."""
        trained = self.kind in (BY_TRIAL, "sft", "dpo")
        return str(self.settings["train.algo"]) if trained else self.kind

    @property
    def env(self) -> str:
        """The environment, as far as it is known."""
        found = (self.result or {}).get("env")
        if found is None and self.kind == BY_TRIAL:
            # Until it is finished, only the policy's card says what it plays.
            card = self.path / "best" / "policy.json"
            found = json.loads(card.read_text("utf-8"))["env"] if card.is_file() else None
        return str(found or self.settings.get("env.spec", ""))

    def of(self, *path: str) -> Any:
        """Return something out of the result, or None where there is no such thing."""
        found: Any = self.result
        for part in path:
            found = found.get(part) if isinstance(found, Mapping) else None
        return found


def read_run(path: Path) -> RunRecord:
    """Read a run directory. Raises `RunDirError` where there is none."""
    try:
        about = json.loads((path / "run.json").read_text("utf-8"))
        settings = tomllib.loads((path / "config.toml").read_text("utf-8"))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise RunDirError(f"{path} is no run directory: it has no {missing}") from error
    except NotADirectoryError as error:
        raise RunDirError(f"{path} is a file, and no run directory") from error
    except ValueError as error:
        raise RunDirError(f"run.json or config.toml in {path} is damaged: {error}") from error
    words = shlex.split(about.get("command", ""))
    command = words[1] if len(words) > 1 else ""
    flat = _flat(settings)
    result_file = path / "result.json"
    try:
        result = json.loads(result_file.read_text("utf-8")) if result_file.is_file() else None
        rows = {row["step"]: row for row in read_json_lines(path / "metrics.jsonl")}
        command = command if result is None else result.get("command", command)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise RunDirError(
            f"result.json or metrics.jsonl in {path} is damaged: {error!r}"
        ) from error
    return RunRecord(
        path=path,
        kind=_kind(command, str(flat.get("train.algo", ""))),
        about=about,
        settings=flat,
        metrics=tuple(rows[step] for step in sorted(rows)),
        result=result,
    )


def _kind(command: str, algo: str) -> str:
    if command != "train":
        return command
    return algo if algo in ("sft", "dpo") else BY_TRIAL


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[before + name] = value
    return found
