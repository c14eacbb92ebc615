"""Options that several commands share, and the config they add up to."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym import __version__
from dreamgym.config import MAY_CHANGE, RunConfig, dump_toml, load_config
from dreamgym.errors import LLMBudget, LLMDown
from dreamgym.runs import RunDir, open_run
from dreamgym.runs.versions import installed_versions
from dreamgym.types import digest

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How systems say that nothing more can be written."""
GATE_SHUT = 3
"""The exit status where an audit found a dream not fit to train in."""
TRY_AGAIN = 75
"""The exit status of a run whose language model stayed away or whose budget is spent."""

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


def open_run_for(
    command: str,
    config: RunConfig,
    *,
    out: Path | None,
    resume: bool | None,
    place: str | None = None,
) -> RunDir:
    """Open the run directory of a command; without `--out` its name follows from the settings.

    `resume` is None for commands whose runs cannot be continued.
    """
    text = dump_toml(config)
    about_what = config.env.spec.split("?")[0] if place is None else place
    name = "".join(char if char.isalnum() else "-" for char in about_what)
    path = out or Path("runs") / f"{command}-{name}-{digest(text, size=3)}"
    about = {
        "version": __version__,
        "command": shlex.join(["dreamgym", *sys.argv[1:]]),
        "packages": ", ".join(f"{name} {found}" for name, found in installed_versions().items()),
    }
    return open_run(
        path, config=text, about=about, resume=bool(resume), resumable=resume is not None,
        may_change=MAY_CHANGE, defaults=dump_toml(RunConfig()),
    )  # fmt: skip


@contextmanager
def running(run: RunDir, *, resumable: bool, always: bool = False) -> Iterator[None]:
    """Close the run at the end; leave nothing of one that could not even start.

    Args:
        run: as opened.
        resumable: whether the command can go on where it stopped.
        always: whether it does so by itself, without `--resume`.
    """
    again = "" if always else " with " + shlex.join(["--resume", "--out", str(run.path)])
    hint = f" The same command{again} goes on from there." if resumable else ""
    try:
        yield
    except (LLMDown, LLMBudget) as error:
        raise stopped(f"Stopped: {error}.", hint=hint, code=TRY_AGAIN) from None
    except BrokenPipeError:
        # Whoever read the output is gone, and so is whoever would read a word about it.
        raise stopped("The output was closed.", hint=hint, code=1) from None
    except OSError as error:
        if error.errno not in NO_ROOM:
            run.discard()
            raise
        why = f"error: {error.strerror}: {run.path} cannot be written to. Make room."
        raise stopped(why, hint=hint, code=1) from None
    except KeyboardInterrupt:
        raise stopped("Interrupted.", hint=hint, code=130) from None
    except Exception:
        run.discard()
        raise
    finally:
        run.close()


def stopped(why: str, *, hint: str, code: int) -> typer.Exit:
    """Say why a command stops early and what is kept; return what ends it."""
    message = f"{why} What was acknowledged is kept.{hint}"
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(code)


def store_at(path: Path) -> Path:
    """Return the store file that a path means: itself, or the store of a run directory."""
    return path / "experience.sqlite" if path.is_dir() else path


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
