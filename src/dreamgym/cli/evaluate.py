"""`dreamgym eval`: success of a policy in the real environment."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from dreamgym import build
from dreamgym.cli import options
from dreamgym.cli.display import facts, progress
from dreamgym.config import dump_toml
from dreamgym.jobs.evaluate import run_evaluate

Split = Annotated[str | None, typer.Option("--split", help="train, dev or test.")]
Episodes = Annotated[int | None, typer.Option("--episodes", help="How many tasks.")]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="expert, random, explore, noisy, probe, wander, module:function, or a model folder.",
    ),
]


def evaluate(
    env: options.Env = None,
    split: Split = None,
    episodes: Episodes = None,
    policy: Policy = None,
    seed: options.Seed = None,
    out: options.Out = None,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Judge a policy on held-out tasks, for real.

    A trained policy is judged in the environment that it plays, unless another one is named.
    """
    unnamed = not (env or preset or config or any("env." in each for each in settings or ()))
    if unnamed and policy:
        env = build.env_of_policy(policy)
    flags = {
        "env.spec": env,
        "eval.split": split,
        "eval.episodes": episodes,
        "eval.policy": policy,
        "seed": seed,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    run = options.open_run_for("eval", resolved, out=out, resume=None)
    with (
        options.running(run, resumable=False),
        progress(console, "Evaluating", total=resolved.eval.episodes) as bar,
    ):
        report, overlap = asyncio.run(run_evaluate(resolved, run, on_progress=bar))
    if report.success.episodes < resolved.eval.episodes - report.failed:
        asked, got = resolved.eval.episodes, report.success.episodes + report.failed
        console.print(f"The split has {got} tasks, {asked} were asked for; each is played once.")
    facts(
        console,
        f"{resolved.eval.policy} on {resolved.env.spec}, {resolved.eval.split} split",
        [
            ("success", report.success),
            ("failed episodes", ", ".join(f"{k} {n}" for k, n in report.failures) or 0),
            ("real transitions", report.transitions),
            ("mean length", f"{report.mean_length:.1f}"),
            ("refused actions", f"{report.refused_share:.0%}"),
            ("held out", overlap or "not measured"),
            ("result", run.result_path),
        ],
    )
    if report.first_failure:
        message = f"The first failure: {report.first_failure}"
        console.print(message, markup=False, soft_wrap=True, style="red")
    if report.success.episodes == 0:
        raise typer.Exit(1)
