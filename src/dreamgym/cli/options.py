"""Options that several commands share, and the config they add up to."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym import __version__
from dreamgym.config import RunConfig, dump_toml, load_config
from dreamgym.errors import ConfigError, MissingDependency
from dreamgym.runs import RunDir, open_run
from dreamgym.types import digest

Preset = Annotated[str | None, typer.Option("--preset", help="Start from a shipped preset.")]
Files = Annotated[
    list[Path] | None, typer.Option("--config", help="Read settings from TOML; may be repeated.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one setting, section.name=value; may be repeated."),
]
Env = Annotated[str | None, typer.Option("--env", help="The environment, family/name?param=value.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The seed of all randomness.")]
Out = Annotated[Path | None, typer.Option("--out", help="The run directory.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the run in that directory, if there is one.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved settings and do nothing.")
]
Store = Annotated[Path, typer.Option("--store", help="The experience store, or a run directory.")]


def resolve_config(
    preset: str | None,
    files: list[Path] | None,
    settings: list[str] | None,
    flags: Mapping[str, object | None],
) -> RunConfig:
    """Return the config that the options add up to; a flag counts as the last `--set`."""
    given = [f"{name}={_quoted(value)}" for name, value in flags.items() if value is not None]
    return load_config(preset=preset, files=files or (), settings=[*(settings or ()), *given])


def open_run_for(command: str, config: RunConfig, *, out: Path | None, resume: bool) -> RunDir:
    """Open the run directory of a command; without `--out` its name follows from the settings."""
    text = dump_toml(config)
    place = "".join(char if char.isalnum() else "-" for char in config.env.spec.split("?")[0])
    path = out or Path("runs") / f"{command}-{place}-{digest(text, size=3)}"
    about = {"version": __version__, "command": shlex.join(["dreamgym", *sys.argv[1:]])}
    return open_run(path, config=text, about=about, resume=resume)


@contextmanager
def running(run: RunDir, *, resumable: bool) -> Iterator[None]:
    """Close the run at the end; leave nothing of one that could not even start."""
    try:
        yield
    except (ConfigError, MissingDependency):
        run.discard()
        raise
    except KeyboardInterrupt:
        hint = f" --resume --out {run.path} goes on from there." if resumable else ""
        message = f"Interrupted. What was acknowledged is kept.{hint}"
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    finally:
        run.close()


def store_at(path: Path) -> Path:
    """Return the store file that a path means: itself, or the store of a run directory."""
    return path / "experience.sqlite" if path.is_dir() else path


def _quoted(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
