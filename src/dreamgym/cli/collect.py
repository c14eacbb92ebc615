"""`dreamgym collect`: record real experience."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import facts, progress, table
from dreamgym.config import RunConfig, dump_toml
from dreamgym.jobs.collect import Collected, run_collect
from dreamgym.rollout.record import Recorded
from dreamgym.rollout.summary import HARD_REFUSALS_WANTED
from dreamgym.runs import RunDir

Split = Annotated[str | None, typer.Option("--split", help="train, dev or test.")]
Episodes = Annotated[int | None, typer.Option("--episodes", help="How many episodes.")]
Tasks = Annotated[int | None, typer.Option("--tasks", help="Use only the first so many tasks.")]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="expert, random, explore, noisy, probe, wander, mixed, module:function, or a model "
        "folder.",
    ),
]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="Store to add to; the run's own by default.")
]
BeginWith = Annotated[
    Path | None, typer.Option("--begin-with", help="Begin the run's own store as a copy of this.")
]


def collect(
    env: options.Env = None,
    split: Split = None,
    episodes: Episodes = None,
    tasks: Tasks = None,
    policy: Policy = None,
    seed: options.Seed = None,
    store: StorePath = None,
    begin_with: BeginWith = None,
    out: options.Out = None,
    resume: options.Resume = False,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Record real episodes into an experience store."""
    flags = {
        "env.spec": env,
        "collect.split": split,
        "collect.episodes": episodes,
        "collect.tasks": tasks,
        "collect.policy": policy,
        "collect.begin_with": str(options.store_at(begin_with).absolute()) if begin_with else None,
        "seed": seed,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    run = options.open_run_for("collect", resolved, out=out, resume=resume)
    with options.running(run, resumable=True):
        show_collected(console, collect_with_bar(resolved, run, console), run)


def collect_with_bar(config: RunConfig, run: RunDir, console: Console) -> Collected:
    """Run the collect job and show how far it is."""
    with progress(console, "Collecting", total=config.collect.episodes) as bar:

        def show(state: Recorded) -> None:
            bar(state.done, note=f"{state.won} won, {state.steps} steps")

        return asyncio.run(run_collect(config, run, on_progress=show))


def _speed(collected: Collected) -> str:
    if collected.speed is None:
        return "nothing was left to play"
    steps, outside = collected.speed.steps_per_second, collected.speed.outside_engine
    return f"{steps:.0f} steps/s, {outside:.0%} of the time outside the engine"


def show_collected(console: Console, collected: Collected, run: RunDir) -> None:
    """Print what was recorded."""
    summary = collected.summary
    rows = [(name, rate.episodes, f"{rate.mean:.2f}", f"{rate.low:.2f} to {rate.high:.2f}")
            for name, rate in summary.success]  # fmt: skip
    columns = ("policy", "episodes", "success", "95 % interval")
    table(console, f"Recorded in {run.path}", columns, rows)
    verbs = ", ".join(f"{verb} {count}" for verb, count in summary.verbs[:10])
    facts(
        console,
        "",
        [
            ("tasks", summary.tasks),
            ("transitions", f"{summary.transitions} real, all offline"),
            ("episode length", f"{summary.shortest} to {summary.longest}, median "
                               f"{summary.median_length:g}"),
            ("distinct", f"{summary.distinct_states} states, {summary.distinct_pairs} "
                         "(state, action) pairs"),
            ("refused actions", f"{summary.refused} ({summary.refused_share:.0%})"),
            ("actions", verbs),
            ("speed", _speed(collected)),
            ("failed episodes", ", ".join(f"{kind} {n}" for kind, n in collected.failures) or 0),
            ("store", collected.store),
        ],
    )  # fmt: skip
    if collected.first_failure:
        console.print(
            f"The first failure: {collected.first_failure}",
            markup=False,
            soft_wrap=True,
            style="red",
        )
    if summary.episodes == 0:
        raise typer.Exit(1)
    if not summary.enough_refusals:
        console.print(
            f"Only {summary.refused_share:.0%} of the actions were refused. A dream needs about "
            f"{HARD_REFUSALS_WANTED:.0%} to learn what reality does not allow; "
            "--policy probe records them.",
            style="yellow",
        )
