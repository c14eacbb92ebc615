"""`dreamgym audit`: may one train in this dream?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import facts, progress, table
from dreamgym.config import dump_toml

if TYPE_CHECKING:
    from dreamgym.audit import AuditReport
    from dreamgym.audit.one_step import StepFigures
    from dreamgym.audit.outcome import OutcomeFigures

World = Annotated[
    str | None, typer.Option("--world", help="The dream: a folder that `dreamgym fit` made.")
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
        "seed": seed,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    from dreamgym.jobs.audit import PAGE, run_audit

    place = resolved.audit.world.rstrip("/").rpartition("/")[2] or "dream"
    run = options.open_run_for("audit", resolved, out=out, resume=False, place=place)
    with options.running(run, resumable=False), progress(console, "Auditing", total=100) as bar:
        report = asyncio.run(
            run_audit(
                resolved, run, on_progress=lambda share, stage: bar(int(100 * share), note=stage)
            )
        )
    show(console, report)
    facts(
        console,
        "Cost",
        [
            ("real steps", report.cost.real_steps),
            ("dream steps", report.cost.dream_steps),
            ("tasks that memory knows", f"{report.familiar.mean:.0%}"),
            ("seconds", f"{report.cost.seconds:.1f}"),
            ("result", run.result_path),
            ("page", run.path / PAGE),
        ],
    )
    _verdict(console, report)
    if strict and report.reasons:
        raise typer.Exit(1)


def show(console: Console, report: AuditReport) -> None:
    """Print the figures."""
    one, loop = report.one_step, report.closed_loop
    counts = f"{one.steps} steps, {one.unknown} unknown, {one.failed} failed"
    rows = [(name.replace("_", " "), figure) for name, figure in _figures(one.figures)]
    facts(console, f"One step after a real past ({counts})", rows)
    for policy in report.on_policy:
        counts = f"{policy.episodes} episodes, {policy.unknown} unknown, {policy.failed} failed"
        rows = [(name.replace("_", " "), figure) for name, figure in _figures(policy.figures)]
        rows += [
            ("own real success", policy.own.real_success),
            ("refused in the dream", policy.refused_dream),
            ("refused for real", policy.refused_real),
            ("worlds part, per step", policy.drift.per_step),
        ]
        facts(console, f"{policy.policy} in the dream, told again for real ({counts})", rows)
        if policy.first_failure:
            console.print(f"The first failure: {policy.first_failure}", markup=False)
    counts = f"{loop.episodes} episodes, {loop.unknown} unknown, {loop.failed} failed"
    rows = [(name.replace("_", " "), figure) for name, figure in _figures(loop.figures)]
    rows.append(("worlds part, per step", loop.drift.per_step))
    rows.append(("rank correlation of policies", loop.rank_correlation))
    if report.luck:
        rows.append(("luck: spread of rewards", report.luck.reward_spread))
    facts(console, f"Real episodes told again in the dream ({counts})", rows)
    table(
        console,
        "Policies in both worlds",
        ("policy", "how", "dream success", "real success"),
        [
            (one.name, one.how, one.figures.dream_success, one.figures.real_success)
            for one in loop.policies
        ],
    )


def _figures(figures: StepFigures | OutcomeFigures) -> list[tuple[str, object]]:
    return [(name, getattr(figures, name)) for name in figures.__dataclass_fields__]


def _verdict(console: Console, report: AuditReport) -> None:
    if not report.reasons:
        console.print("The gate is open: one may train in this dream.", style="green")
        return
    console.print("The gate is shut:", style="red")
    for reason in report.reasons:
        console.print(f"- {reason}", markup=False, highlight=False, soft_wrap=True)
