"""`dreamgym import` and `export`: trajectories from and to other people's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym import build
from dreamgym.cli import options
from dreamgym.cli.display import facts
from dreamgym.cli.replay import Embedder, open_existing
from dreamgym.config import ReplayConfig
from dreamgym.jobs.records import run_export, run_import
from dreamgym.records import FORMATS, READABLE
from dreamgym.types import Source, Split


def import_(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")],
    store: options.Store,
    format: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(READABLE)}; without it, told by content."),
    ] = None,
    env: Annotated[str | None, typer.Option("--env", help="File them under this name.")] = None,
    split: Annotated[Split, typer.Option("--split", help="And this split.")] = Split.TRAIN,
    max_bad_share: Annotated[
        float, typer.Option("--max-bad-share", help="Bad records to put up with, 0 to 1.")
    ] = 0.0,
    embedder: Embedder = "hashing",
) -> None:
    """Read trajectories of other tools into a store."""
    config = ReplayConfig(embedder=embedder)
    try:
        taken = run_import(
            paths,
            lambda: build.make_store(options.store_at(store), config),
            format=format,
            env=env,
            split=split,
            max_bad_share=max_bad_share,
        )
    except KeyboardInterrupt:
        hint = " The same command goes on: what the store knows is not taken twice."
        raise options.stopped("Interrupted.", hint=hint, code=130) from None
    console = Console()
    for bad in taken.report.first_bad:
        console.print(f"left out: {bad}", markup=False, highlight=False, soft_wrap=True)
    facts(
        console,
        f"Imported into {options.store_at(store)}",
        [
            ("records", f"{taken.report.records}, of which {taken.report.bad} bad"),
            ("trajectories", f"{taken.stored} new, {taken.known} known already"),
            ("transitions", f"{taken.transitions} new"),
            ("successes", f"{taken.report.successes}, as the source says"),
            ("kept out", ", ".join(f"{rule} {n}" for rule, n in taken.refused) or 0),
        ],
    )


def export(
    path: Annotated[Path, typer.Argument(help="The file to write.")],
    store: options.Store,
    format: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "native",
    source: Annotated[Source | None, typer.Option("--source", help="real or dream only.")] = None,
    split: Annotated[Split | None, typer.Option("--split", help="One split only.")] = None,
    won: Annotated[bool, typer.Option("--won", help="Only episodes that succeeded.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    embedder: Embedder = "hashing",
) -> None:
    """Write a store's trajectories for other tools."""
    with open_existing(store, embedder) as opened:
        rows = run_export(
            opened,
            path,
            format=format,
            source=source,
            split=split,
            only_won=won,
            overwrite=overwrite,
        )
    Console().print(f"{rows} rows of {format} in {path}", highlight=False, soft_wrap=True)
