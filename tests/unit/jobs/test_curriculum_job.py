"""The curriculum as the train job makes it: over a dream, over reality, or not at all."""

import asyncio
import json
from pathlib import Path

import pytest

from dreamgym import dreams
from dreamgym.config import load_config
from dreamgym.jobs.curriculum import make_sampler, write_pool
from dreamgym.rollout.groups import Group
from dreamgym.tasks import Curriculum
from dreamgym.train.loop import UniformTasks
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dream(small_dream):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(small_dream)
        opened = dreams.open_dream(Path("dream"))
        yield opened
        asyncio.run(opened.close())


def settings(*more):
    return load_config(settings=["train.algo='grpo'", "curriculum.on=true", *more])


def sampler(dream, *more, on_event=lambda name, **details: None, tasks=None):
    tasks = tasks or dream.tasks(Split.TRAIN)
    return make_sampler(settings(*more), tasks, dream=dream, on_event=on_event)


def half_won(task):
    """A group of which one of two episodes was won."""
    return Group(
        task,
        tuple(
            Trajectory(
                f"{task.id}/{won}", task, Observation("hall"),
                (Step(Action("go"), StepResult(Observation("x"), terminated=True, success=won)),),
                StopReason.TERMINATED, Provenance(Source.DREAM, "policy"),
            )
            for won in (True, False)
        ),
    )  # fmt: skip


def refilled(dream, *more):
    """Practise a few tasks with success and failure and refill; returns sampler and events."""
    events = []
    course = sampler(
        dream,
        "curriculum.refill_every=1",
        *more,
        on_event=lambda name, **details: events.append((name, details)),
    )
    course.observe([half_won(task) for task in course.draw(0, 4)])
    figures = asyncio.run(course.refill(0))
    return course, events, figures


def test_off_means_evenly(dream):
    config = load_config(settings=["train.algo='grpo'"])
    quiet = {"dream": dream, "on_event": lambda name, **details: None}
    assert isinstance(make_sampler(config, dream.tasks(Split.TRAIN), **quiet), UniformTasks)


def test_tasks_begin_elsewhere_in_their_own_world_and_can_be_played(dream, tmp_path):
    course, events, figures = refilled(dream, "curriculum.maker='records'")
    made = [one for one in course.pool if one.synthetic]
    assert figures["tasks/added"] == len(made) > 0
    assert all(details["at_home"] for name, details in events if name == "task_added")
    task = made[0].task
    (source,) = (one for one in course.pool if one.task.id == task.parents[0])
    assert source.task.split is Split.TRAIN
    assert task.goal == source.task.goal
    assert task.first_state != source.opening

    async def first_step():
        env = await dream.world.open(task)
        opening = await env.reset(0)
        known = dream.world.records.of_task(dream.memory, task, None)
        place = task.first_state.partition("\n")[0]
        assert place in known.pages(task.first_state, (), task_id=task.id)
        return opening, await env.step("move west")

    opening, result = asyncio.run(first_step())
    assert opening.observation.text == task.first_state
    # The room to the west is given as the record of the source has it.
    before = {one.next_state for one in dream.memory.recall(source.task.id)}
    assert result.refused or result.observation.text in {*before, source.opening}
    write_pool(course, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert len(rows) == len(course.pool)
    assert {row["value"] for row in rows if row["visits"]} == {0.25}


def test_a_dream_that_was_not_taught_to_vary_does_without_and_says_so(dream):
    course, events, figures = refilled(dream)
    assert not [one for one in course.pool if one.synthetic]
    assert figures["tasks/refill_failed"] > 0
    assert [name for name, _ in events][-1] == "refill_given_up"
    assert "was not taught" in events[0][1]["why"]
    course.draw(1, 4)
    asyncio.run(course.refill(1))
    assert [name for name, _ in events][-1] == "refill_given_up"  # nobody is asked again


def test_for_real_tasks_have_values_but_none_is_made_up(dream):
    tasks = tuple(Task(one.id, one.env, one.key, one.split) for one in dream.tasks(Split.TRAIN))
    course = make_sampler(settings(), tasks, dream=None, on_event=lambda name, **details: None)
    assert isinstance(course, Curriculum)
    course.observe([half_won(task) for task in course.draw(0, 4)])
    assert asyncio.run(course.refill(4)) == {}
    assert course.state()["refill"] is None


def test_ppo_compares_clusters(dream):
    config = load_config(settings=["train.algo='ppo'", "curriculum.on=true"])
    course = make_sampler(
        config, dream.tasks(Split.TRAIN), dream=dream, on_event=lambda name, **details: None
    )
    figures = course.observe([half_won(task) for task in course.draw(0, 4)])
    assert figures["tasks/clusters"] > 1
    assert "tasks/clusters" not in sampler(dream).observe([])
