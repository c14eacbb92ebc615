"""Where a policy practises: which tasks, and what becomes of its real episodes."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from dreamgym import dreams
from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.practice import chosen_tasks, open_grounds, recorded_before, rememberer
from dreamgym.jobs.reinforce import loop_plan, needs_reality
from dreamgym.replay import open_store
from dreamgym.rollout.groups import Group
from dreamgym.types import (
    Action,
    EpisodeFailure,
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

TASKS = tuple(Task(f"stairs#{n}", "stairs", str(n), Split.TRAIN) for n in range(3))


def settings(*more):
    return load_config(settings=["train.algo='grpo'", *more])


def episode(name, **changes):
    step = Step(Action("up"), StepResult(Observation("stair 1")))
    made = Provenance(Source.REAL, "policy", seed=7, engine="stairs 1", mapper="m")
    task = replace(TASKS[0], goal="climb")
    whole = Trajectory(name, task, Observation("stair 0"), (step,), StopReason.STEP_LIMIT, made)
    return replace(whole, **changes)


def test_real_episodes_are_kept_once_with_who_made_them(tmp_path):
    broken = episode("c", error=EpisodeFailure("EnvError", "env.step", "it broke"))
    group = Group(TASKS[0], (episode("a"), episode("b", steps=()), broken))
    with open_store(tmp_path / "own.sqlite") as store:
        remember = rememberer(store, "ppo")
        remember(12, [group])
        remember(12, [group])  # the step came again after a crash
        (kept,) = store.trajectories()
    assert kept.provenance == Provenance(Source.REAL, "ppo@12", 7, "stairs 1", "m")
    assert kept.steps == episode("a").steps


def test_only_named_tasks_are_practised():
    assert chosen_tasks(settings(), TASKS) == TASKS
    assert chosen_tasks(settings("rl.tasks='stairs#2, stairs#0'"), TASKS) == (TASKS[2], TASKS[0])
    with pytest.raises(ConfigError, match=r"real has no task 'stairs#9'\. Did you mean 'stairs#"):
        chosen_tasks(settings("rl.tasks='stairs#9'"), TASKS)


class Deserted:
    """A real world without tasks."""

    async def info(self):
        return self

    version = mapper = "none"

    async def tasks(self, split):
        return ()


def test_a_world_without_tasks_is_refused(tmp_path):
    async def opened():
        async with AsyncExitStack() as stack:
            own = tmp_path / "own.sqlite"
            await open_grounds(settings(), "stairs", Deserted(), stack, own=own)

    with pytest.raises(ConfigError, match="the pool is empty"):
        asyncio.run(opened())


@pytest.mark.parametrize("unknown", ["left-out", "no-reward"])
def test_having_no_words_is_not_knowing_where_that_earns_nothing(unknown, small_dream, tmp_path):
    async def opened():
        config = settings(f"rl.world='{small_dream / 'dream'}'", f"rl.unknown='{unknown}'")
        async with AsyncExitStack() as stack:
            env = dreams.load_card(small_dream / "dream").env
            grounds = await open_grounds(config, env, None, stack, own=tmp_path / "own.sqlite")
            return grounds.dream.world.pessimism.known_words, grounds.practice.learn_unknown

    expected = unknown == "no-reward"
    assert asyncio.run(opened()) == (expected, expected)


def test_the_record_says_how_much_reality_refuses(small_dream):
    dream = dreams.open_dream(small_dream / "dream")
    told = list(dream.store.trajectories(split=Split.TRAIN))
    answers = [step.result.refused for one in told for step in one.steps]
    made, refused = recorded_before(dream)
    assert refused == sum(answers) / len(answers) > 0
    assert made >= len(answers)
    asyncio.run(dream.close())


def test_settings_of_the_transfer_reach_the_loop():
    dream = ("rl.world='d'", "rl.eval_every=0")
    assert needs_reality(settings())
    assert not needs_reality(settings(*dream))
    assert needs_reality(settings(*dream, "rl.then_real=500"))
    assert needs_reality(settings(*dream, "rl.watch='note'"))
    plan = loop_plan(
        settings("rl.world='d'", "rl.then_real=500", "rl.switch_step=7", "rl.watch='return'",
                 "rl.watch_precision=0.7")
    )  # fmt: skip
    assert (plan.real_transitions, plan.switch.step) == (500, 7)
    assert (plan.watch.acts, plan.watch.min_precision) == ("return", 0.7)
    assert loop_plan(settings()).real_transitions is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["rl.then_real=500"], "name a dream with --world"),
        (["rl.world='d'", "rl.then_real=239"], r"8 times rl\.max_steps 30 is 240"),
        (["rl.world='d'", "rl.then_real=500", "rl.switch_step=31"], "the dream has rl.steps = 30"),
        (["rl.watch='return'", "rl.eval_every=0"], "nobody looks"),
        (["rl.watch='halt'"], "rl.watch 'halt'"),
        (["rl.watch_precision=1.5"], "between 0 and 1"),
        (["rl.minibatches=7"], "do not divide into 7 minibatches"),
        (["rl.then_real=-1"], "at least 0"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        settings(*wrong)
