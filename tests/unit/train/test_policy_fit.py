"""Behaviour cloning: small policies learn small worlds from few demonstrations."""

import asyncio
from dataclasses import replace

import pytest

from dreamgym import build
from dreamgym.agents import make_behaviour
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import Choose, PolicyCard
from dreamgym.agents.policy_prompt import Format
from dreamgym.errors import ConfigError
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.sft_plan import SftPlan
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.testing import CorridorWorld
from dreamgym.train.demonstrations import SPANS, Retelling, policy_texts
from dreamgym.train.policy_fit import clone, make_policy_model, split_demonstrations
from dreamgym.train.renaming import Names
from dreamgym.types import Source, Split

CARD = PolicyCard("corridor", longest_action=6)
PLAN = SftPlan(spans=SPANS, steps=30, tokens_per_step=384, warmup_steps=5, eval_every=20)
NO_NAMES = Names(())


def play(behaviour, tasks):
    """Return the episodes of tasks under a behaviour."""
    world = CorridorWorld()
    slots = plan_slots(
        tasks, episodes=len(tasks), behaviour=behaviour, max_steps=12, seed=0,
        answerer=Answerer(Source.REAL, "corridor 1", "plain"),
    )  # fmt: skip

    async def run():
        return [one async for one in collect(slots, world, concurrency=16)]

    return asyncio.run(run())


@pytest.fixture(scope="module")
def demonstrations():
    return play(make_behaviour("expert"), CorridorWorld().tasks(Split.TRAIN, 6))


def make(demonstrations, seed=0):
    def texts():
        return list(policy_texts(demonstrations, demonstrations, list_actions=False))

    return make_policy_model("1m", texts, vocabulary=400, seed=seed)


def told(demonstrations):
    return Retelling(demonstrations, NO_NAMES, share=0.0, seed=0)


@pytest.mark.slow
def test_a_policy_learns_the_corridor_from_a_few_walks(demonstrations):
    policy = make(demonstrations)
    result = clone(policy, told(demonstrations), told([]), card=CARD, plan=PLAN)
    assert result.steps == 30
    llm = LocalLLM(policy.model, policy.tokenizer)
    for choose in (Choose.NOTHING, Choose.LISTED):
        agents = build.make_model_agents(llm, replace(CARD, temperature=0.0, choose=choose))
        who = Behaviour("it", agents)
        played = play(lambda slot, who=who: who, CorridorWorld().tasks(Split.DEV, 6))
        assert [one.success for one in played] == [True] * 6
        assert not any(step.result.refused for one in played for step in one.steps)
        assert all(step.action.tokens for one in played for step in one.steps)


@pytest.mark.slow
def test_training_goes_on_where_it_was_left(demonstrations, tmp_path):
    class Killed(Exception):
        pass

    def kill(progress):
        if progress.step == 13:
            raise Killed

    plan = replace(PLAN, steps=16, checkpoint_every=5)
    names = Names((tuple("012345"),))
    stories = Retelling(demonstrations[1:], names, share=0.7, seed=1)
    held = Retelling(demonstrations[:1], names, share=0.7, seed=1)
    whole, broken, again = (make(demonstrations, seed=5) for _ in range(3))
    first = clone(whole, stories, held, card=CARD, plan=plan)
    with pytest.raises(Killed):
        clone(broken, stories, held, card=CARD, plan=plan, folder=tmp_path, on_progress=kill)
    second = clone(again, stories, held, card=CARD, plan=plan, folder=tmp_path)
    assert first.curve == second.curve
    weights = zip(whole.model.parameters(), again.model.parameters(), strict=True)
    assert all(bool((one == other).all()) for one, other in weights)


def test_some_demonstrations_are_held_out_and_at_least_one_is_learnt(demonstrations):
    learnt, held = split_demonstrations(demonstrations, share=0.34, seed=3)
    assert (len(learnt), len(held)) == (4, 2)
    assert {one.id for one in learnt}.isdisjoint(one.id for one in held)
    assert len(split_demonstrations(demonstrations, share=0.99, seed=3)[0]) == 1


def test_a_saved_model_is_one_to_start_from(demonstrations, tmp_path):
    policy = make(demonstrations)
    folder = tmp_path / "model"
    folder.mkdir()
    policy.model.save(folder)
    policy.tokenizer.save(folder)
    again = make_policy_model(str(tmp_path), lambda: [], vocabulary=1, seed=9)
    assert again.format is policy.format is Format.COMPACT
    assert again.tokenizer.vocab_size == policy.tokenizer.vocab_size
    with pytest.raises(ConfigError, match="neither one of 1m"):
        make_policy_model(str(tmp_path / "nowhere"), lambda: [], vocabulary=1, seed=9)
