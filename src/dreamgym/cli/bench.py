"""`dreamgym bench`: named experiment suites, resumable, with tables over seeds."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym import __version__
from dreamgym.bench import SUITES, Suite, make_suite
from dreamgym.bench.known import KnownCells
from dreamgym.bench.run import Standing
from dreamgym.bench.suites import MODEL
from dreamgym.cli import options
from dreamgym.cli.display import progress, time_left
from dreamgym.config import dump_toml
from dreamgym.config.bench import BenchConfig
from dreamgym.runs import open_run

Name = Annotated[str, typer.Argument(help=f"The suite: {', '.join(SUITES)}.")]
SizeOf = Annotated[str, typer.Option("--scale", help="tiny, brief, small, medium, long or full.")]
Envs = Annotated[
    list[str] | None,
    typer.Option("--env", help="Only these, by short name or spec; 'coin8->map' in transfer."),
]
Arms = Annotated[list[str] | None, typer.Option("--arm", help="Only these arms; repeatable.")]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="Sizes of the policy: 1m, 3m; repeatable.")
]
Gate = Annotated[
    bool, typer.Option("--gate/--no-gate", help="Train only in dreams that pass their audits.")
]
Stages = Annotated[
    Path | None,
    typer.Option("--stages", help="Keep stages in this folder: other suites share them."),
]
Cells = Annotated[
    Path | None,
    typer.Option("--cells", help="Do not run cells on record in this file; add finished ones."),
]
Seeds = Annotated[int, typer.Option("--seeds", help="How many seeds, from 0.", min=1)]
OnlySeeds = Annotated[
    list[int] | None,
    typer.Option("--seed", help="Only these seeds, whatever --seeds says; repeatable.", min=0),
]
Jobs = Annotated[int, typer.Option("--jobs", help="Commands side by side.", min=1)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what is missing and do nothing.")]


def bench(
    name: Name,
    scale: SizeOf = "small",
    env: Envs = None,
    arm: Arms = None,
    seeds: Seeds = 5,
    seed: OnlySeeds = None,
    model: Models = None,
    gate: Gate = True,
    jobs: Jobs = 1,
    stages: Stages = None,
    cells: Cells = None,
    out: options.Out = None,
    dry_run: DryRun = False,
) -> None:
    """Run an experiment suite. Start it again after an interruption, and it goes on."""
    sizes = tuple(dict.fromkeys(model or (MODEL,)))
    chosen = sorted(set(seed or range(seeds)))
    suite = make_suite(
        name, scale, envs=env or (), arms=arm or (), seeds=chosen, models=sizes, gate=gate
    )
    path = (out or Path("runs") / f"bench-{name}-{scale}").absolute()
    console = Console()
    known = KnownCells(cells)
    if dry_run:
        _show_commands(console, known.missing(suite), (stages or path).absolute())
        return
    from dreamgym.jobs.bench import PAGE, TABLE, run_bench

    command = shlex.join(["dreamgym", *sys.argv[1:]])
    settings = BenchConfig(
        name, scale, ",".join(suite.envs), ",".join(suite.arms), ",".join(map(str, chosen)),
        ",".join(sizes), gate, str(stages.absolute()) if stages else "",
    )  # fmt: skip
    about = {"version": __version__, "command": command}
    run = open_run(
        path, config=dump_toml(settings), about=about, resume=True,
        may_change=frozenset({"envs", "arms", "seeds", "models", "gate"}),
    )  # fmt: skip
    _show_known(console, known, suite)
    with options.running(run, resumable=True, always=True), progress(
        console, f"Bench {name}", total=len(known.missing(suite).stages), guess_time=False
    ) as bar:  # fmt: skip

        def changed(standing: Standing) -> None:
            bar(standing.done, note=_in_words(standing))

        work = run_bench(
            suite, run, scale=scale, command=command, stages=stages, known=known, jobs=jobs,
            on_change=changed,
        )  # fmt: skip
        done = asyncio.run(work)
    console.print(done.markdown, markup=False, highlight=False, soft_wrap=True)
    console.print(f"In {path}: {TABLE}, {PAGE}, result.json.", markup=False, soft_wrap=True)
    if done.failures:
        raise typer.Exit(1)


def _show_known(console: Console, known: KnownCells, suite: Suite) -> None:
    """Say how much is on record, so that a mistyped name of a file shows at once."""
    if known.path is not None:
        count = len(suite.cells) - len(known.missing(suite).cells)
        words = f"{count} of {len(suite.cells)} cells are on record in {known.path}."
        console.print(words, markup=False, highlight=False, soft_wrap=True)


def _in_words(standing: Standing) -> str:
    """Say how long it will take, what runs and what failed."""
    left = standing.seconds_left
    told = [time_left(left)] if left else []
    told += [", ".join(standing.running)] if standing.running else []
    told += [f"{len(standing.failed)} failed"] if standing.failed else []
    return "; ".join(told)


def _show_commands(console: Console, suite: Suite, root: Path) -> None:
    """Print every command, none before what it needs."""
    missing = [stage for stage in suite.stages if not stage.finished(root)]
    for stage in missing:
        words = shlex.join(["dreamgym", *stage.command(root)])
        console.print(words, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(missing)} commands, {len(suite.cells)} cells.", highlight=False)
