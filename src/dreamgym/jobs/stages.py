"""Stages: jobs one after the other, each with settings and a run directory of its own.

A stage that has its result is not repeated; one that was cut off goes on, or begins again where its
job cannot. Which stages there are is the business of whoever runs them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dreamgym import __version__
from dreamgym.config import MAY_CHANGE, RunConfig, dump_toml
from dreamgym.errors import DreamGymError, EnvError
from dreamgym.jobs.audit import run_audit
from dreamgym.jobs.collect import run_collect
from dreamgym.jobs.evaluate import run_evaluate
from dreamgym.jobs.fit import run_fit
from dreamgym.jobs.reinforce import run_rl
from dreamgym.jobs.train import run_sft
from dreamgym.models.sft_plan import SftProgress
from dreamgym.rollout.record import Recorded
from dreamgym.runs import RunDir, open_run
from dreamgym.runs.versions import installed_versions
from dreamgym.train.progress import Progress

STORE = "experience.sqlite"
"""Where a run keeps the experience of all its stages."""
COMMANDS = {
    "collect": "collect",
    "sft": "train",
    "fit": "fit",
    "audit": "audit",
    "rl": "train",
    "eval": "eval",
}
"""The command that does the same as a job."""
_LOOKING_UP = 0.1
"""The part of a fit, roughly, that is over when training begins."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One job. It can be made again by hand with its `config.toml`."""

    name: str
    """Of its folder."""
    about: str
    """What it does, for people."""
    job: str
    config: RunConfig
    share: float = 1.0
    """Of the time that all stages take, in whatever unit; only to tell how much is left."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Where a stage stands."""

    stage: Stage
    share: float
    """Of the stage, between 0 and 1."""
    note: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Of a step of learning, `step` among them."""
    reused: bool = False
    """Whether the stage was finished before."""


OnTick = Callable[[Tick], None]


def finish_stage(stage: Stage, folder: Path, whole: RunDir, *, on_tick: OnTick) -> None:
    """Bring a stage to its end, unless it is there."""
    if (folder / "result.json").is_file():
        whole.begin()
        on_tick(Tick(stage, 1.0, reused=True))
        return
    if stage.job in ("audit", "eval") and folder.exists():
        shutil.rmtree(folder)
    about = {
        "version": __version__,
        "command": f"dreamgym {COMMANDS[stage.job]} --config {folder / 'config.toml'}",
        "packages": ", ".join(f"{name} {found}" for name, found in installed_versions().items()),
    }
    inner = open_run(
        folder, config=dump_toml(stage.config), about=about, resume=True, may_change=MAY_CHANGE,
        defaults=dump_toml(RunConfig()),
    )  # fmt: skip
    on_tick(Tick(stage, 0.0))
    began, processor = time.monotonic(), _processor_seconds()
    try:
        JOBS[stage.job](stage, inner, on_tick)
    except DreamGymError:
        inner.discard()
        raise
    finally:
        if folder.exists():
            whole.begin()  # There is something to keep.
        inner.close()
    whole.event(
        "stage",
        stage=stage.name,
        seconds=round(time.monotonic() - began, 1),
        processor_seconds=round(_processor_seconds() - processor, 1),
    )
    on_tick(Tick(stage, 1.0))


def _processor_seconds() -> float:
    """Return what this process and those of its children that have ended took."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _collect(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    def tell(state: Recorded) -> None:
        note = f"{state.done} of {state.total} episodes, {state.steps} steps"
        on_tick(Tick(stage, state.done / max(1, state.total), note))

    collected = asyncio.run(run_collect(stage.config, run, on_progress=tell))
    _check_played(run, collected.summary.episodes, collected.first_failure)


def _evaluate(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    total = stage.config.eval.episodes

    def tell(done: int) -> None:
        on_tick(Tick(stage, done / total, f"{done} of {total} tasks"))

    report, _ = asyncio.run(run_evaluate(stage.config, run, on_progress=tell))
    _check_played(run, report.success.episodes, report.first_failure)


def _check_played(run: RunDir, episodes: int, failure: str) -> None:
    if not episodes:
        # Without a result the stage is tried again next time.
        run.result_path.unlink(missing_ok=True)
        raise EnvError(f"every episode failed, the first with: {failure}")


def _supervised(
    stage: Stage, total: int, on_tick: OnTick, *, before: float = 0.0
) -> Callable[[SftProgress], None]:
    def tell(state: SftProgress) -> None:
        note = f"update {state.step} of {total}, loss {state.loss:.3f}"
        on_tick(Tick(stage, before + (1 - before) * state.step / total, note))

    return tell


def _clone(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    run_sft(
        stage.config, run, on_progress=_supervised(stage, stage.config.train.steps, on_tick)
    )  # fmt: skip


def _fit(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    def read(done: int, total: int) -> None:
        note = f"looking up references: {done} of {total} steps"
        on_tick(Tick(stage, _LOOKING_UP * done / max(1, total), note))

    updates = stage.config.fit.steps or 1
    learnt = _supervised(stage, updates, on_tick, before=_LOOKING_UP)
    run_fit(stage.config, run, on_lessons=read, on_progress=learnt)


def _audit(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    def tell(share: float, note: str) -> None:
        on_tick(Tick(stage, share, note))

    asyncio.run(run_audit(stage.config, run, on_progress=tell))


def _reinforce(stage: Stage, run: RunDir, on_tick: OnTick) -> None:
    wanted = stage.config.rl

    def row(state: Progress, figures: dict[str, float]) -> None:
        if state.stage:
            share = 0.5 + 0.5 * state.real_steps / wanted.then_real
            note = f"{state.real_steps} of {wanted.then_real} real transitions"
        else:
            share = state.step / wanted.steps * (0.5 if wanted.then_real else 1.0)
            note = f"step {state.step} of {wanted.steps}"
        on_tick(Tick(stage, min(1.0, share), note, {"step": float(state.step), **figures}))

    asyncio.run(run_rl(stage.config, run, on_row=row))


Job = Callable[[Stage, RunDir, OnTick], None]
JOBS: Mapping[str, Job] = {
    "collect": _collect,
    "sft": _clone,
    "fit": _fit,
    "audit": _audit,
    "rl": _reinforce,
    "eval": _evaluate,
}
