"""Who picks the tasks that a policy practises: evenly, or by a curriculum, as the settings say.

Part of the train job. Only tasks of the train split get in; what is known of others serves to
refuse made-up tasks that equal them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from dreamgym import build
from dreamgym.config import RunConfig
from dreamgym.dreams import Dream, recorded_openings
from dreamgym.experience.prompt import Style
from dreamgym.experience.task_memory import known_task
from dreamgym.experience.task_prompt import Example
from dreamgym.files import write_atomically
from dreamgym.llm.breaker import EventSink
from dreamgym.tasks import (
    Curriculum,
    Mix,
    ModelMaker,
    RecordedStarts,
    Refill,
    RefillPlan,
    Rules,
    TaskClusters,
    TaskGate,
    TaskMaker,
    TaskPool,
    Worth,
    learn_customs,
)
from dreamgym.tasks.makers import Known, plain_example
from dreamgym.train.loop import TaskSampler, UniformTasks
from dreamgym.types import Opening, Source, Split, Task

TASKS = "tasks.jsonl"
"""The pool at the end, in the run directory."""


def make_sampler(
    config: RunConfig, tasks: Sequence[Task], *, dream: Dream | None, on_event: EventSink
) -> TaskSampler:
    """Return who picks the tasks.

    Args:
        config: the settings.
        tasks: real tasks of the train split.
        dream: where they are practised; None means for real, where no task can be made up.
        on_event: is told what becomes of made-up tasks.
    """
    wanted = config.curriculum
    if not wanted.on:
        return UniformTasks(tasks, seed=config.seed)
    openings = recorded_openings(dream.store, dream.card.env) if dream is not None else {}
    embedder = build.make_embedder(dream.card.embedder if dream else config.replay.embedder)
    by_cluster = wanted.value == "cluster" or (wanted.value, config.train.algo) == ("auto", "ppo")
    refill = None
    if dream is not None and wanted.maker != "none" and wanted.synthetic_share > 0:
        refill = make_refill(config, dream, openings, on_event=on_event)
    return Curriculum(
        TaskPool(tasks, openings),
        worth=Worth(wanted.unseen, wanted.half_life, wanted.floor),
        rules=Rules(
            mastery_visits=wanted.mastery_visits,
            rest=wanted.rest,
            feasible_visits=wanted.feasible_visits,
            kept=max(4, wanted.mastery_visits, wanted.feasible_visits),
        ),
        mix=Mix(wanted.synthetic_share, wanted.most_synthetic),
        clusters=TaskClusters(embedder, count=wanted.clusters) if by_cluster else None,
        refill=refill,
        seed=config.seed,
        on_event=on_event,
    )


def make_refill(
    config: RunConfig, dream: Dream, openings: dict[str, Opening], *, on_event: EventSink
) -> Refill:
    """Return what makes new tasks in a dream."""
    wanted, world = config.curriculum, dream.world
    train = [one for one in openings.values() if one.task.split is Split.TRAIN]
    held_out = [one for one in openings.values() if one.task.split is not Split.TRAIN]
    customs = learn_customs(train, heard=_recorded_words(dream))
    known = _with_places(dream)
    maker: TaskMaker = RecordedStarts(known)
    if wanted.maker == "model":
        # A small model that knows the places of a world begins there; it needs no other prompt.
        one_goal = customs.one_goal and dream.card.style is Style.FULL
        maker = ModelMaker(
            world.model, known=known, one_goal=one_goal, temperature=wanted.temperature
        )
    gate = TaskGate(
        customs,
        build.make_embedder(dream.card.embedder),
        alike=wanted.alike,
        new_words=wanted.new_words,
        held_out=[f"{one.task.goal}\n{one.observation.text}" for one in held_out],
    )
    return Refill(
        maker,
        gate,
        RefillPlan(
            every=wanted.refill_every,
            sources=wanted.sources,
            variations=wanted.variations,
            examples=wanted.examples,
            patience=wanted.patience,
        ),
        at_home=lambda task: world.records.at_home(dream.memory, task),
        seed=config.seed,
        on_event=on_event,
    )


def _recorded_words(dream: Dream) -> Iterator[str]:
    """Yield every recorded state of the train split once."""
    told = dream.store.trajectories(source=Source.REAL, split=Split.TRAIN, env=dream.card.env)
    seen: set[str] = set()
    for trajectory in told:
        for step in trajectory.steps:
            text = step.result.observation.text
            if text not in seen:
                seen.add(text)
                yield text


def _with_places(dream: Dream) -> Known:
    """Return what shows a task together with the places of its world, where they are on record."""

    def known(opening: Opening) -> Example:
        task, state = opening.task, opening.observation.text
        at_home = dream.world.records.at_home(dream.memory, task)
        for name in (task.id, *(task.parents if at_home else ())):
            steps = dream.memory.recall(name)
            if steps:
                return known_task(task.goal, state, steps)
        return plain_example(opening)

    return known


def write_pool(sampler: TaskSampler, folder: Path) -> None:
    """Write the pool of a curriculum, with values, to `tasks.jsonl`; others have none to tell."""
    if isinstance(sampler, Curriculum):
        lines = [json.dumps(row, ensure_ascii=False) for row in sampler.rows()]
        write_atomically(folder / TASKS, "\n".join(lines) + "\n")
