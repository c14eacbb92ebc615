"""`dreamgym annotate`: reasoning for recorded steps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import facts, llm_notice, progress, spent_words
from dreamgym.config import dump_toml
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.annotate import Annotated as Outcome
    from dreamgym.jobs.annotate import Annotating

By = Annotated[
    str | None,
    typer.Option("--by", help="rule (fixed words, no model) or teacher (the model of [llm])."),
]
Env = Annotated[str | None, typer.Option("--env", help="Only this environment.")]
Split = Annotated[str | None, typer.Option("--split", help="Only train, dev or test.")]
Limit = Annotated[int | None, typer.Option("--limit", help="At most so many trajectories.")]
Again = Annotated[bool, typer.Option("--again", help="Replace explanations that are there.")]


def annotate(
    store: options.Store,
    by: By = None,
    env: Env = None,
    split: Split = None,
    limit: Limit = None,
    again: Again = False,
    out: options.Out = None,
    resume: options.Resume = False,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Explain recorded steps, by rule or by a teacher."""
    flags = {
        "annotate.by": by,
        "annotate.env": env,
        "annotate.split": split,
        "annotate.limit": limit,
        "annotate.again": again or None,
        "replay.store": str(options.store_at(store).absolute()),
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    from dreamgym.jobs.annotate import run_annotate  # brings the HTTP client along

    place = options.store_at(store).absolute().parent.name
    run = options.open_run_for("annotate", resolved, out=out, resume=resume, place=place)
    with options.running(run, resumable=True):
        with progress(console, "Annotating", total=0) as bar:

            def show(state: Annotating) -> None:
                bar(state.done, note=_note(state), total=state.total)

            job = run_annotate(resolved, run, on_progress=show, on_llm=llm_notice(console))
            annotated = asyncio.run(job)
        _show(console, annotated, run)


def _note(state: Annotating) -> str:
    parts = [f"{state.failed} failed"] if state.failed else []
    return ", ".join([*parts, *([spent_words(state.spent)] if state.spent else [])])


def _show(console: Console, annotated: Outcome, run: RunDir) -> None:
    failed = ", ".join(f"{kind} {count}" for kind, count in annotated.failed_by_kind.items())
    facts(
        console,
        f"Annotated in {annotated.store}",
        [
            ("annotator", annotated.annotator),
            ("trajectories", f"{annotated.trajectories} ({annotated.steps} steps)"),
            ("had explanations", annotated.before),
            ("failed", failed or 0),
            ("language model", spent_words(annotated.spent) if annotated.spent else "not asked"),
            ("time", f"{annotated.seconds:.1f} s"),
            ("result", run.result_path),
        ],
    )
    if annotated.failures:
        first = annotated.failures[0]
        console.print(
            f"The first failure, of {first.id}: {first.kind}: {first.message}\n"
            "All are in result.json; --resume tries them again.",
            markup=False,
            soft_wrap=True,
            style="red",
        )
        if annotated.trajectories == 0:
            raise typer.Exit(1)
