"""`dreamgym demo`: the whole way, from recorded experience to an agent that learnt in its dream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.config import RunConfig, dump_toml
from dreamgym.envs.registry import make_engine
from dreamgym.errors import OtherSettings
from dreamgym.runs import remove_run

if TYPE_CHECKING:
    from dreamgym.jobs.demo_result import DemoOutcome
    from dreamgym.jobs.stages import Tick
    from dreamgym.runs import RunDir

ALFWORLD = "alfworld"

Fresh = Annotated[bool, typer.Option("--fresh", help="Throw an earlier demo away and start anew.")]
Env = Annotated[
    str | None, typer.Option("--env", help="alfworld, or any environment, family/name?param=value.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="The run directory; runs/demo and the like by default.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with what is there; it does so in any case.")
]


def demo(
    env: Env = None,
    seed: options.Seed = None,
    out: Out = None,
    resume: Resume = False,
    fresh: Fresh = False,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Record, dream, audit, learn in the dream, and judge for real: all of it, in minutes.

    Stages that are finished are not repeated; one that was cut off goes on. Ends with 3 where the
    audit shuts the gate: then nothing is trained.
    """
    if fresh and resume:
        raise typer.BadParameter("--fresh throws away what --resume would go on with: give one")
    in_house = env is not None and env.partition("/")[0] == ALFWORLD
    preset = "demo-alfworld" if in_house else "demo"
    flags = {"env.spec": None if env == ALFWORLD else env, "seed": seed}
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    place = out or default_place(resolved, env)
    if fresh:
        from dreamgym.jobs.demo_plan import plan_demo

        # Nothing is thrown away for a demo that cannot begin.
        make_engine(resolved.env.spec)
        plan_demo(resolved, place)
        remove_run(place, command="demo")
    try:
        run = options.open_run_for("demo", resolved, out=place, resume=True)
    except OtherSettings as error:
        raise OtherSettings(f"{error}, or throw it away with --fresh") from error
    with options.running(run, resumable=True, always=True):
        outcome = demo_with_view(resolved, run, console)
    show(console, outcome, place)


def default_place(config: RunConfig, env: str | None) -> Path:
    """Return a folder for each environment and seed, so that none is in the way of another."""
    family = "".join(char if char.isalnum() else "-" for char in (env or "").partition("?")[0])
    parts = [
        "demo",
        *([family] if family else []),
        *([f"seed{config.seed}"] if config.seed else []),
    ]
    return Path("runs") / "-".join(parts)


def demo_with_view(config: RunConfig, run: RunDir, console: Console) -> DemoOutcome:
    """Run the stages and show where they stand."""
    from dreamgym.cli.demo_live import DemoView
    from dreamgym.jobs.demo import run_demo  # torch: only when there is something to train
    from dreamgym.jobs.demo_plan import plan_demo
    from dreamgym.jobs.demo_result import read_curve
    from dreamgym.report import read_run

    root = run.path.absolute()
    console.print(f"The real environment: {config.env.spec}", highlight=False, soft_wrap=True)
    with DemoView(console, plan_demo(config, root)) as view:

        def tick(tick: Tick) -> None:
            if tick.stage.job == "rl" and tick.figures:
                there = [root / name for name in ("dreamt", "real") if (root / name).is_dir()]
                view.curve(read_curve([read_run(path) for path in there]))
            view.tick(tick)

        return run_demo(config, run, on_tick=tick)


def show(console: Console, outcome: DemoOutcome, place: Path) -> None:
    """Print what came of it; where the gate is shut, why."""
    from dreamgym.cli import demo_view
    from dreamgym.jobs.audit import PAGE as AUDIT
    from dreamgym.jobs.report import PAGE

    if outcome.curve:
        demo_view.show_curve(console, outcome.curve)
    if outcome.example is not None:
        demo_view.show_example(console, outcome.example)
    demo_view.show_outcome(console, outcome, result=place / "result.json", page=place / PAGE)
    if not outcome.reasons:
        return
    console.print("The gate is shut, so nothing was trained:", style="red")
    for reason in outcome.reasons:
        console.print(f"- {reason}", markup=False, highlight=False, soft_wrap=True)
    told = f"What the audit found is in {place / 'audit' / AUDIT}. A dream gets better with more "
    told += "experience (--set collect.episodes=...) and more updates (--set fit.steps=...)."
    console.print(told, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(options.GATE_SHUT)
