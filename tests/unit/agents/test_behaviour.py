import asyncio

import pytest

from dreamgym.agents import BEHAVIOURS, make_behaviour
from dreamgym.agents.behaviour import MIX
from dreamgym.errors import AgentError, ConfigError
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.rollout.summary import summarise
from dreamgym.testing import CorridorWorld
from dreamgym.types import Action, Observation, Source, Split, Task

TASK = Task(id="t", env="e", key="1", split=Split.TRAIN)


def play(policy, *, episodes=60, **options):
    world = CorridorWorld()
    slots = plan_slots(
        world.tasks(Split.TRAIN, 8),
        episodes=episodes,
        behaviour=make_behaviour(policy, **options),
        answerer=Answerer(Source.REAL, "corridor 1", "m"),
        max_steps=60,
        seed=0,
    )

    async def run():
        return [t async for t in collect(slots, world, concurrency=8)]

    return asyncio.run(run())


def test_the_expert_takes_the_shortest_way():
    for trajectory in play("expert"):
        assert trajectory.success
        assert len(trajectory.steps) == int(trajectory.task.key) + 1


def test_the_noisy_policy_strays_and_finds_back():
    played = play("noisy", noise=0.3)
    assert all(t.success for t in played)
    assert any(len(t.steps) > int(t.task.key) + 1 for t in played)
    assert all(len(t.steps) == int(t.task.key) + 1 for t in play("noisy", noise=0.0))


def test_the_random_policy_only_does_what_is_accepted():
    assert summarise(play("random")).refused == 0


def test_the_explorer_does_everything_once_before_anything_twice():
    agent = make_behaviour("explore")(0).make(None, 0)
    here, there = Observation("here", ("a", "b", "c")), Observation("there", ("a",))

    def done(now):
        return asyncio.run(agent.act(TASK, (), now)).text

    assert {done(here), done(here), done(here)} == {"a", "b", "c"}
    assert done(there) == done(there) == "a"
    assert {done(here), done(here), done(here)} == {"a", "b", "c"}
    assert summarise(play("explore")).refused == 0


def test_the_explorer_sees_more_than_chance_does():
    def seen(policy):
        return sum(len({s.result.observation.text for s in t.steps}) for t in play(policy))

    assert seen("explore") > seen("random")


def test_the_probe_puts_refusals_on_record():
    summary = summarise(play("probe", probe_share=0.6))
    assert 0.45 < summary.refused_share < 0.75
    assert summary.success[0][1].mean > 0.9


def test_the_wanderer_is_refused_without_a_plan():
    assert 0.4 < summarise(play("wander", probe_share=0.6)).refused_share < 0.75


def test_the_mix_holds_every_policy_and_enough_refusals():
    played = play("mixed", episodes=70)
    assert {t.provenance.behaviour for t in played} == set(MIX)
    assert set(MIX) <= set(BEHAVIOURS)
    assert summarise(played).enough_refusals


def test_a_world_without_a_list_of_actions_cannot_be_played_at_random():
    agent = make_behaviour("random")(0).make(None, 0)
    with pytest.raises(AgentError, match="no admissible actions"):
        asyncio.run(agent.act(TASK, (), Observation("s")))


def test_an_expert_without_a_plan_goes_on_so_that_a_loss_counts():
    class Silent:
        async def expert(self):
            return ()

    agent = make_behaviour("expert")(0).make(Silent(), 0)
    done = asyncio.run(agent.act(TASK, (), Observation("s", ("wait",))))
    assert done == Action("wait")


class Eastward:
    def __init__(self, env, seed):
        pass

    async def act(self, task, past, now):
        return Action("east" if "east" in now.admissible else "take coin")


def test_your_own_agent_is_a_module_and_a_function(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "my_agents", sys.modules[__name__])
    assert all(t.success for t in play("my_agents:Eastward"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("expart", "Did you mean 'expert'"),
        ("no_such_module:x", "cannot be loaded: ModuleNotFoundError: No module"),
        ("json:nothing", "cannot be loaded"),
        (":x", "cannot be loaded: ValueError: Empty module name"),
    ],
)
def test_unknown_policies_say_what_is_known(name, message):
    with pytest.raises(ConfigError, match=message):
        make_behaviour(name)
