"""`dreamgym vary`: look at the tasks that a dream makes of known ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options

if TYPE_CHECKING:
    from dreamgym.jobs.vary import Varied

World = Annotated[
    str,
    typer.Option(
        "--world", help="The run of a fit; or llm (the model of [llm]), smollm2, a model folder."
    ),
]
Sources = Annotated[
    list[str] | None, typer.Option("--from", help="The id of a task to vary; may be repeated.")
]
Tasks = Annotated[int, typer.Option("--tasks", min=1, help="Without --from: how many are varied.")]
Count = Annotated[int, typer.Option("--count", min=1, help="Variations of each.")]
Warmth = Annotated[float, typer.Option("--temperature", min=0.0, help="How freely it invents.")]
Store = Annotated[
    Path | None, typer.Option("--store", help="Remember with this store or run directory.")
]


def vary(
    world: World,
    sources: Sources = None,
    tasks: Tasks = 3,
    count: Count = 4,
    temperature: Warmth = 1.0,
    store: Store = None,
    env: options.Env = None,
    seed: options.Seed = None,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
) -> None:
    """Let a dream make new tasks of known ones, and show both."""
    flags = {
        "env.spec": env,
        "seed": seed,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    from dreamgym.jobs import vary as job  # torch: only when there is something to ask
    from dreamgym.jobs.play import open_played

    async def make() -> tuple[Varied, ...]:
        dream = open_played(world, resolved)
        try:
            chosen = job.chosen_tasks(dream, sources or (), most=tasks)
            return await job.vary_tasks(
                dream, chosen, count=count, seed=resolved.seed, temperature=temperature
            )
        finally:
            await dream.close()

    console = Console(highlight=False, markup=False, soft_wrap=True)
    made = asyncio.run(make())
    for one in made:
        _show(console, one)
    wanted, got = count * len(made), sum(len(one.variations) for one in made)
    console.print(f"{got} of {wanted} variations could be read and are no repeats.")


def _show(console: Console, varied: Varied) -> None:
    console.print(f"Task {varied.task.id}", style="bold")
    console.print(f"Goal: {varied.source.goal}")
    console.print(_indented(varied.source.first_state))
    console.print(f"Other places on record: {len(varied.source.places)}\n", style="dim")
    for number, one in enumerate(varied.variations, start=1):
        where = "a place on record" if varied.is_on_record(one) else "written by the model"
        console.print(f"Variation {number}: {where}", style="bold")
        console.print(f"Goal: {one.goal}" + (" (as before)" if _same(varied, one.goal) else ""))
        console.print(_indented(one.first_state) + "\n")
    if varied.trouble:
        console.print(f"{varied.trouble}\n", style="red")


def _same(varied: Varied, goal: str) -> bool:
    return goal == " ".join(varied.source.goal.split())


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
