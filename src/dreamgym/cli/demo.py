"""`dreamgym demo`: collect real experience, store it, find it again, and show what was found."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from dreamgym import build
from dreamgym.cli import options
from dreamgym.cli.collect import collect_with_bar, show_collected
from dreamgym.cli.replay import show_hits
from dreamgym.replay import ExperienceStore
from dreamgym.types import Source, Split, Trajectory

Fresh = Annotated[bool, typer.Option("--fresh", help="Throw an earlier demo away and start anew.")]


def demo(
    env: options.Env = None,
    seed: options.Seed = None,
    out: Annotated[Path, typer.Option("--out", help="The run directory.")] = Path("runs/demo"),
    fresh: Fresh = False,
) -> None:
    """Record real experience, store it, find it again."""
    console = Console()
    config = options.resolve_config("demo", None, None, {"env.spec": env, "seed": seed})
    if fresh and (out / "run.json").exists():
        shutil.rmtree(out)
    console.print(f"The real environment: {config.env.spec}", highlight=False, soft_wrap=True)
    run = options.open_run_for("demo", config, out=out, resume=True)
    with options.running(run, resumable=False):
        collected = collect_with_bar(config, run, console)
        show_collected(console, collected, run)
    with build.make_store(collected.store, config.replay) as store:
        _show_episode(console, store)
        _show_retrieval(console, store)
    console.print(
        f"\nEverything is in {out}: settings, events, result.json and the experience store.\n"
        f"Look further with [bold]dreamgym replay search --store {out} --action ...[/bold]"
    )


def _show_episode(console: Console, store: ExperienceStore) -> None:
    won = (item for item in store.trajectories(source=Source.REAL) if item.success)
    example = min(itertools.islice(won, 50), key=lambda item: len(item.steps), default=None)
    if example is not None:
        console.print(Panel(Text(_script(example)), title="One episode", title_align="left"))


def _script(example: Trajectory) -> str:
    lines = [f"Task: {example.task.goal}", "", example.opening.text]
    for step in example.steps:
        mark = " (refused)" if step.result.refused else ""
        lines += ["", f"> {step.action.text}{mark}", step.result.observation.text]
    return "\n".join([*lines, "", "Achieved." if example.success else "Not achieved."])


def _show_retrieval(console: Console, store: ExperienceStore) -> None:
    """Take one recorded step and show the nearest steps of other episodes."""
    for trajectory in store.trajectories(split=Split.TRAIN):
        steps = [step for step in trajectory.transitions() if not step.refused and step.index]
        if len(steps) < 3:
            continue
        asked = steps[len(steps) // 2]
        console.print(
            Panel(Text(f"{asked.state}\n\n> {asked.action}"), title="Asked", title_align="left")
        )
        hits = store.search(asked.state, asked.action, k=4, exclude_trajectory=asked.trajectory_id)
        show_hits(console, hits)
        return
