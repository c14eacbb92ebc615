"""`dreamgym fit`: make a dream of recorded experience."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import facts, progress, table, time_left
from dreamgym.config import RunConfig, dump_toml
from dreamgym.runs import RunDir

if TYPE_CHECKING:
    from dreamgym.jobs.fit import Fitted
    from dreamgym.models.sft_plan import SftProgress

Store = Annotated[
    Path | None, typer.Option("--store", help="The experience store, or a run directory.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="1m, 3m or 10m from scratch, or a model folder.")
]
Steps = Annotated[int | None, typer.Option("--steps", help="Updates of the weights.")]


def fit(
    store: Store = None,
    env: options.Env = None,
    model: Model = None,
    steps: Steps = None,
    seed: options.Seed = None,
    out: options.Out = None,
    resume: options.Resume = False,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Fit an experience model on the real steps of a store: the result is a dream."""
    flags = {
        "env.spec": env,
        "fit.model": model,
        "fit.steps": steps,
        "seed": seed,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    run = options.open_run_for("fit", resolved, out=out, resume=resume)
    with options.running(run, resumable=True):
        show_fitted(console, fit_with_bars(resolved, run, console))


def fit_with_bars(config: RunConfig, run: RunDir, console: Console) -> Fitted:
    """Run the fit job and show how far it is."""
    from dreamgym.jobs.fit import run_fit  # torch: only when there is something to fit

    steps, held_out = config.fit.steps, ""
    with progress(console, "Fitting", total=steps or 100, guess_time=False) as bar:

        def read(done: int, total: int) -> None:
            bar(0, note=f"looking up references: {done} of {total} steps")

        def learnt(state: SftProgress) -> None:
            nonlocal held_out
            if state.held_out is not None:
                exact = " ".join(f"{n} {s.exact:.2f}" for n, s in state.held_out.spans.items())
                held_out = f"; held out {state.held_out.loss:.3f}, exact {exact}"
            share = 100 - round(100 * state.seconds_left / config.fit.seconds)
            note = f"{time_left(state.seconds_left)}; loss {state.loss:.3f}{held_out}"
            bar(state.step if steps else share, note=note)

        return run_fit(config, run, on_lessons=read, on_progress=learnt)


def show_fitted(console: Console, fitted: Fitted) -> None:
    """Print how the held-out curve went, and what came of it."""
    rows = [
        (point.step, f"{point.loss:.4f}",
         *(f"{s.loss:.3f}, {s.exact:.3f}" for s in point.spans.values()))
        for point in fitted.result.curve
    ]  # fmt: skip
    names = list(fitted.result.curve[0].spans) if fitted.result.curve else []
    columns = ("step", "loss", *names)
    title = f"Held-out steps of {fitted.env}: loss, and share that is wholly right"
    table(console, title, columns, rows[-12:])
    result = fitted.result
    facts(
        console,
        "",
        [
            ("dream", fitted.folder),
            ("model", f"{fitted.parameters:,} parameters, {fitted.vocabulary} tokens"),
            ("learnt from", f"{fitted.lessons} real steps, {fitted.hard_share:.0%} of them refused "
                            f"or without effect; {fitted.task_lessons} lessons about tasks"),
            ("updates", f"{result.steps}, best at {result.best_step}"),
            ("tokens", f"{result.tokens:,}, {result.padding:.1%} filler beside them"),
            ("time", f"{fitted.seconds:.0f} s, {result.seconds:.0f} s of them training"),
        ],
    )  # fmt: skip
