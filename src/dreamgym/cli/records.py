"""`dreamgym import` and `export`: trajectories from and to other people's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dreamgym.cli import options

Format = Annotated[
    str | None, typer.Option("--format", help="native, messages, sharegpt, atif; told by content.")
]


def import_(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")],
    store: options.Store,
    format: Format = None,
) -> None:
    """Read recorded trajectories of other tools into an experience store."""


def export(
    path: Annotated[Path, typer.Argument(help="The file to write.")],
    store: options.Store,
    format: Format = None,
) -> None:
    """Write a store's trajectories as a file for other tools."""
