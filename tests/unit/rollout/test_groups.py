"""Groups: their order, their seeds, and what is counted of them."""

import asyncio
from dataclasses import replace

import pytest

from dreamgym.agents import Behaviour, make_behaviour
from dreamgym.errors import ConfigError
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import (
    GroupPlan,
    ended_unknown,
    group_figures,
    plan_groups,
    play_groups,
)
from dreamgym.testing import CorridorWorld
from dreamgym.types import Source, Split

ANSWERER = Answerer(Source.REAL, "corridor 1", "m")
PLAN = GroupPlan(members=3, max_steps=12, concurrency=4, seed=1)
TASKS = CorridorWorld().tasks(Split.TRAIN, 5)


def laid_out(*, step=0, plan=PLAN, policy="expert", tasks=TASKS):
    return plan_groups(tasks, make_behaviour(policy)(0), plan, step=step, answerer=ANSWERER)


def played(world, slots, plan=PLAN):
    return asyncio.run(play_groups(slots, world, plan))


def seeds(slots):
    return [slot.provenance.seed for slot in slots]


def test_groups_come_in_order_whatever_finishes_first():
    slots = laid_out()
    groups = played(CorridorWorld(jitter=0.003), slots)
    assert [group.task for group in groups] == list(TASKS)
    assert [len(group.episodes) for group in groups] == [3] * 5
    ids = [one.id for group in groups for one in group.episodes]
    assert ids == [slot.trajectory_id for slot in slots]
    assert len(set(ids)) == 15


def test_seeds_follow_from_run_step_slot_and_member():
    assert seeds(laid_out()) == seeds(laid_out())
    assert len(set(seeds(laid_out()))) == 15
    assert not set(seeds(laid_out())) & set(seeds(laid_out(step=1)))
    assert not set(seeds(laid_out())) & set(seeds(laid_out(plan=replace(PLAN, seed=2))))
    # A group's seeds do not depend on how many others there are.
    assert seeds(laid_out(tasks=TASKS[:2])) == seeds(laid_out())[:6]


def test_the_same_task_twice_is_two_groups():
    slots = laid_out(tasks=[TASKS[0], TASKS[0]])
    assert len({slot.trajectory_id for slot in slots}) == 6
    assert len(set(seeds(slots))) == 6


def test_failed_episodes_are_counted_and_change_nothing_else():
    whole = group_figures(played(CorridorWorld(), laid_out(tasks=TASKS[:3])))
    broken = CorridorWorld(breaks=lambda task, step: task in TASKS[3:] and step >= 1)
    partly = group_figures(played(broken, laid_out()))
    assert partly["episodes/failed"] == 6
    assert partly["episodes/played"] == 15
    for name in ("reward/mean", "reward/success", "episodes/refused", "episodes/length"):
        assert partly[name] == whole[name]
    assert whole["reward/success"] == 1.0
    assert whole["episodes/length"] == 2.0


def test_what_a_dream_gave_up_is_counted_apart():
    groups = played(CorridorWorld(), laid_out(tasks=TASKS[:2]))
    one = groups[0].episodes[0]
    lost = replace(one.steps[-1], reasoning="[unknown] nobody has been there")
    given_up = replace(one, steps=(*one.steps[:-1], lost))
    dreamt = [
        replace(group, episodes=tuple(_dreamt(each) for each in group.episodes))
        for group in (replace(groups[0], episodes=(given_up, *groups[0].episodes[1:])), groups[1])
    ]
    figures = group_figures(dreamt)
    assert ended_unknown(given_up)
    assert not ended_unknown(one)
    assert figures["episodes/unknown"] == 1
    assert figures["reward/success"] == 1.0
    assert figures["dream/unknown"] == pytest.approx(1 / 9)
    assert figures["dream/model"] == pytest.approx(8 / 9)


def _dreamt(one):
    return replace(one, provenance=replace(one.provenance, source=Source.DREAM))


def test_wrong_plans_are_refused():
    with pytest.raises(ConfigError, match="pool is empty"):
        laid_out(tasks=[])
    with pytest.raises(ConfigError, match="members is 0"):
        GroupPlan(members=0)


def test_an_agent_that_cannot_be_made_fails_its_episode_only():
    def make(env, seed):
        raise ValueError("no agent today")

    slots = plan_groups(TASKS[:1], Behaviour("none", make), PLAN, step=0, answerer=ANSWERER)
    groups = played(CorridorWorld(), slots)
    assert group_figures(groups)["episodes/failed"] == 3
