"""`dreamgym audit`: may one train in this dream?"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import llm_notice, progress
from dreamgym.config import dump_toml

World = Annotated[
    str | None,
    typer.Option(
        "--world", help="The run of a fit; or llm (the model of [llm]), smollm2, a model folder."
    ),
]
Store = Annotated[
    Path | None, typer.Option("--store", help="Remember with this store or run directory.")
]
Judge = Annotated[
    int | None, typer.Option("--judge", help="Steps that the model of [llm] is to judge.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", help="Held-out real trajectories: a store, or a run directory."),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", help="Who plays: a model folder, module:function, expert ...; may be repeated."
    ),
]
Split = Annotated[str | None, typer.Option("--split", help="train, dev or test.")]
Episodes = Annotated[int | None, typer.Option("--episodes", help="Recorded episodes looked at.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 where the gate is shut.")]


def audit(
    world: World = None,
    data: Data = None,
    policy: Policies = None,
    env: options.Env = None,
    split: Split = None,
    episodes: Episodes = None,
    store: Store = None,
    judge: Judge = None,
    strict: Strict = False,
    seed: options.Seed = None,
    out: options.Out = None,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Compare a dream with reality, and say whether one may train in it."""
    flags = {
        "audit.world": world,
        "audit.data": data,
        "audit.policies": ",".join(policy) if policy else None,
        "audit.env": env,
        "audit.split": split,
        "audit.episodes": episodes,
        "audit.judge": judge,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
        "seed": seed,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    from dreamgym.jobs.audit import PAGE, run_audit

    place = resolved.audit.world.rstrip("/").rpartition("/")[2] or "dream"
    run = options.open_run_for("audit", resolved, out=out, resume=None, place=place)
    with options.running(run, resumable=False), progress(console, "Auditing", total=100) as bar:
        job = run_audit(
            resolved,
            run,
            on_progress=lambda share, stage: bar(int(100 * share), note=stage),
            on_llm=llm_notice(console),
        )
        report = asyncio.run(job)
    from dreamgym.cli import audit_view

    audit_view.figures(console, report)
    audit_view.cost(console, report, result=run.result_path, page=run.path / PAGE)
    audit_view.verdict(console, report)
    if strict and report.reasons:
        raise typer.Exit(1)
