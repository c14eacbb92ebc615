"""`dreamgym envs`, `tasks` and `check-env`: what there is to play in, and whether it holds up."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dreamgym import build
from dreamgym.cli.display import table
from dreamgym.config import EnvConfig
from dreamgym.envs.catalogue import catalogue
from dreamgym.envs.check import Finding
from dreamgym.envs.check import check_env as run_checks
from dreamgym.envs.overlap import measure_overlap
from dreamgym.types import Split, Task

Spec = Annotated[str, typer.Argument(help="The environment, family/name?param=value.")]

LINES = 10
"""Width of the borders and gaps of a table of three columns."""


def envs() -> None:
    """List the environments and what they need."""
    console = Console()
    rows = [(item.spec, item.about, item.status) for item in catalogue()]
    # Tables cut their widest column first. Specs and commands are to be copied, so not them.
    spec, _, status = (max(map(len, column)) for column in zip(*rows, strict=True))
    if console.width >= spec + max(spec, status) + status + LINES:
        table(console, "Environments", ("spec", "what it is", "here"), rows)
        return
    for name, about, state in rows:
        console.print(name, style="bold", markup=False, highlight=False, soft_wrap=True)
        console.print(Padding(Text(about), (0, 0, 0, 2)))
        console.print(f"  {state}", style="dim", markup=False, highlight=False, soft_wrap=True)


def tasks(
    env: Spec,
    split: Annotated[Split, typer.Option("--split", help="train, dev or test.")] = Split.TEST,
    show: Annotated[int, typer.Option("--show", min=0, help="How many ids to print.")] = 5,
) -> None:
    """List a split and what it shares with training."""
    console = Console()

    async def look() -> tuple[tuple[Task, ...], str]:
        world = build.make_world(EnvConfig(spec=env))
        try:
            found = await world.tasks(split)
            return found, (await measure_overlap(world, split)).describe()
        finally:
            await world.close()

    found, overlap = asyncio.run(look())
    console.print(f"{len(found)} tasks in {split}", highlight=False)
    for task in found[:show]:
        console.print(f"  {task.id}", markup=False, highlight=False)
    console.print(overlap, highlight=False)


def check_env(env: Spec) -> None:
    """Run the contract tests on an environment."""
    findings = asyncio.run(run_checks(env))
    rows = [(item.name, _verdict(item), item.details) for item in findings]
    table(Console(), f"Contract of {env}", ("check", "verdict", "details"), rows)
    if any(item.passed is False for item in findings):
        raise typer.Exit(1)


def _verdict(item: Finding) -> str:
    if item.passed is None:
        return "not applicable"
    return "ok" if item.passed else "FAILED"
