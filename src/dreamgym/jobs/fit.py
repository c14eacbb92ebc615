"""The fit job: recorded steps become lessons, lessons become a dream in the run's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dreamgym import __version__, build, dreams
from dreamgym.config import RunConfig
from dreamgym.errors import ConfigError
from dreamgym.experience.card import DreamCard
from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.sample import Sample as Lesson
from dreamgym.experience.task_memory import known_tasks
from dreamgym.experience.task_prompt import Job
from dreamgym.models.sft_plan import SftPlan, SftProgress, SftResult
from dreamgym.replay import ExperienceStore
from dreamgym.runs import RunDir
from dreamgym.train.experience_fit import (
    MOST_HELD_OUT,
    Pupil,
    learn,
    make_pupil,
    split_off,
    spread,
)
from dreamgym.train.lessons import (
    SPANS,
    TASK_SPANS,
    as_many_as_used,
    is_hard,
    make_lessons,
    with_ending_share,
    with_hard_share,
)
from dreamgym.train.renamed_lessons import with_renamed_share
from dreamgym.train.renaming import find_names
from dreamgym.train.task_lessons import TaskLesson, make_task_lessons, task_lesson_count
from dreamgym.types import Source, Split, Trajectory, Transition

MOST_HELD_OUT_TASKS = 100
"""Lessons about tasks on the held-out curve."""
_TIMES_EACH = 4
"""How often each held-out task is asked about."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit left behind."""

    folder: Path
    env: str
    parameters: int
    vocabulary: int
    recorded: int
    """Real transitions that lessons were made of, those held out too."""
    lessons: int
    task_lessons: int
    hard_share: float
    result: SftResult
    seconds: float
    """Of everything: reading, looking up, training."""


def run_fit(
    config: RunConfig,
    run: RunDir,
    *,
    on_lessons: Callable[[int, int], None] = lambda done, total: None,
    on_progress: Callable[[SftProgress], None] = lambda progress: None,
) -> Fitted:
    """Fit an experience model on what the store holds."""
    started = time.monotonic()
    path = dreams.store_path(config.replay)
    store = build.make_store(path, config.replay)
    try:
        env = dreams.only_env(store, wanted=config.env.spec)
        lessons = _lessons(config, store, env, on_lessons)
        switches = dreams.switches_of(config.dream)
        pupil = make_pupil(
            config.fit.model,
            lessons.learnt,
            switches=switches,
            vocabulary=config.fit.vocabulary, seed=config.seed, also=lessons.texts,
        )  # fmt: skip
    finally:
        store.close()
    run.begin()

    def note(progress: SftProgress) -> None:
        _note(run, progress)
        on_progress(progress)

    result = learn(
        pupil,
        lessons.learnt,
        held_out=lessons.held_out,
        switches=switches,
        plan=_plan(config),
        folder=run.path / "checkpoints",
        threads=config.fit.threads or os.cpu_count() or 1,
        on_progress=note,
    )
    _save(run, pupil, DreamCard(
        env=env, store=str(path.absolute()), embedder=config.replay.embedder, style=pupil.style,
        switches=switches, references=config.dream.references, known=lessons.known,
        jobs=lessons.jobs, vary_goals=config.fit.vary_goals,
    ))  # fmt: skip
    fitted = Fitted(
        folder=run.path,
        env=env,
        parameters=sum(weight.numel() for weight in pupil.model.parameters()),
        vocabulary=pupil.tokenizer.vocab_size,
        recorded=lessons.recorded,
        lessons=len(lessons.steps),
        task_lessons=len(lessons.tasks),
        hard_share=lessons.hard_share,
        result=result,
        seconds=time.monotonic() - started,
    )
    run.result(result_of(config, fitted))
    run.event("finished", steps=result.steps)
    return fitted


@dataclass(frozen=True, slots=True)
class _Lessons:
    """What is learnt, what is held out, and what the records say about actions."""

    steps: list[Lesson]
    tasks: list[TaskLesson]
    held_out: list[Lesson | TaskLesson]
    known: KnownKinds
    recorded: int
    texts: tuple[str, ...]
    """What is on record: a dream may meet any of it, also what no lesson is made of."""

    @property
    def hard_share(self) -> float:
        return sum(is_hard(one.transition) for one in self.steps) / len(self.steps)

    @property
    def learnt(self) -> list[Lesson | TaskLesson]:
        return [*self.steps, *self.tasks]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(Job) if self.tasks else (Job.STEP,)


def _lessons(
    config: RunConfig,
    store: ExperienceStore,
    env: str,
    on_lessons: Callable[[int, int], None],
) -> _Lessons:
    fit = config.fit
    recorded = list(store.trajectories(source=Source.REAL, split=Split.TRAIN, env=env))
    learnt, held = split_off(
        recorded, share=fit.held_out_share, seed=config.seed, most=fit.transitions
    )
    if not learnt:
        raise ConfigError(
            f"{store.path} holds no real trajectory of the train split of {env} to learn from. "
            "`dreamgym collect` records some"
        )
    made = [one for each in learnt for one in each.transitions()]
    known = KnownKinds.from_transitions(made)
    # Chosen before anything is looked up, which takes most of the time before training.
    chosen = with_hard_share(made, fit.refused_share, seed=config.seed)
    chosen = with_ending_share(chosen, fit.ending_share, seed=config.seed)
    kept = spread([one for each in held for one in each.transitions()], MOST_HELD_OUT)
    with store.snapshot(env=env) as memory:
        make = partial(
            make_lessons,
            memory=memory,
            references=config.dream.references,
            forget=fit.forget_share,
            thin=fit.thin_share,
            goals=known.goals if config.dream.hints else None,
        )
        chosen = as_many_as_used(
            chosen,
            lambda some: make(_of(learnt, some), only={one.id for one in some}),
            tokens=fit.steps * fit.tokens_per_step,
            switches=dreams.switches_of(config.dream),
            seed=config.seed,
        )
        wanted = (*chosen, *kept)
        found: list[Lesson] = []
        for lesson in make(_of([*learnt, *held], wanted), only={one.id for one in wanted}):
            found.append(lesson)
            if len(found) % 200 == 0 or len(found) == len(wanted):
                on_lessons(len(found), len(wanted))
    steps = found[: len(chosen)]
    if fit.rename_share:
        steps = with_renamed_share(steps, find_names(learnt), fit.rename_share, seed=config.seed)
    tasks, held_tasks = _task_lessons(config, learnt, held, beside=len(steps))
    recorded_steps = sum(len(one.steps) for one in (*learnt, *held))
    texts = dict.fromkeys(
        text for one in made for text in (one.goal, one.state, one.action, one.next_state)
    )
    return _Lessons(
        steps, tasks, [*found[len(chosen) :], *held_tasks], known, recorded_steps, tuple(texts)
    )


def _of(trajectories: Sequence[Trajectory], steps: Sequence[Transition]) -> list[Trajectory]:
    """Return the trajectories that these steps are of."""
    wanted = {one.trajectory_id for one in steps}
    return [one for one in trajectories if one.id in wanted]


def _task_lessons(
    config: RunConfig, learnt: Sequence[Trajectory], held: Sequence[Trajectory], *, beside: int
) -> tuple[list[TaskLesson], list[TaskLesson]]:
    """Return lessons about tasks to learn, and to hold out."""
    count = task_lesson_count(beside, config.fit.task_share)
    if not count:
        return [], []
    known, others = known_tasks(learnt), known_tasks(held)
    few = min(MOST_HELD_OUT_TASKS, _TIMES_EACH * len(others))
    vary_goals = config.fit.vary_goals
    return (
        make_task_lessons(
            known, others=known, count=count, seed=config.seed, vary_goals=vary_goals
        ),
        make_task_lessons(others, others=known, count=few, seed=config.seed, vary_goals=vary_goals),
    )


def _plan(config: RunConfig) -> SftPlan:
    fit = config.fit
    return SftPlan(
        spans=TASK_SPANS if fit.task_share else SPANS,
        steps=fit.steps or None,
        seconds=None if fit.steps else fit.seconds,
        tokens_per_step=fit.tokens_per_step,
        learning_rate=fit.learning_rate,
        eval_every=fit.eval_every,
        checkpoint_every=fit.eval_every,
        patience=fit.patience or None,
        seed=config.seed,
    )


def _save(run: RunDir, pupil: Pupil, card: DreamCard) -> None:
    folder = run.path / dreams.MODEL
    folder.mkdir(exist_ok=True)
    pupil.model.save(folder)
    pupil.tokenizer.save(folder)
    # Last, because the card is what makes the folder a dream.
    card.save(run.path)


def _note(run: RunDir, progress: SftProgress) -> None:
    values = {
        "fit/loss": progress.loss,
        "fit/learning_rate": progress.learning_rate,
        "fit/tokens_per_second": progress.tokens_per_second,
    }
    values |= {f"fit/loss_{name}": score.loss for name, score in progress.spans.items()}
    if progress.held_out is not None:
        values["fit/held_out"] = progress.held_out.loss
        for name, score in progress.held_out.spans.items():
            values[f"fit/held_out_{name}"] = score.loss
            values[f"fit/held_out_{name}_exact"] = score.exact
    run.metrics(progress.step, values)


def result_of(config: RunConfig, fitted: Fitted) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    result = fitted.result
    return {
        "command": "fit",
        "env": fitted.env,
        "seed": config.seed,
        "version": __version__,
        "model": config.fit.model,
        "parameters": fitted.parameters,
        "vocabulary": fitted.vocabulary,
        "real_transitions": {"offline": fitted.recorded, "online": 0},
        "lessons": fitted.lessons,
        "task_lessons": fitted.task_lessons,
        "hard_share": round(fitted.hard_share, 4),
        "steps": result.steps,
        "best_step": result.best_step,
        "stopped_early": result.stopped_early,
        "tokens": result.tokens,
        "padding": round(result.padding, 4),
        "held_out": [asdict(point) for point in result.curve],
        "seconds": round(fitted.seconds, 1),
        "training_seconds": round(result.seconds, 1),
    }
