"""Luck under identical actions, by hand."""

import asyncio

import pytest
from dreamed_corridor import HELD, question, recorded, told
from made_pairs import told_as

from dreamgym.audit.luck import measure_luck, sum_up_luck
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.world import DreamWorld
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt


def test_by_hand():
    steady = [told_as(["a"], won=True, task="s")] * 3
    lucky = [
        told_as(["a"], won=True, task="l"),
        told_as(["a"], task="l"),
        told_as(["b"], won=True, task="l"),
    ]
    found = sum_up_luck([steady, lucky], repeats=3)
    assert found.reward_spread.mean == pytest.approx((2 / 9) ** 0.5 / 2)
    assert found.outcome_differs.mean == 0.5
    assert found.states_differ.mean == 0.5


def test_a_broken_repetition_takes_its_episode_out():
    found = sum_up_luck([[told_as(["a"], won=True), told_as(["b"], broken=True)]], repeats=2)
    assert (found.episodes, found.failed) == (1, 1)
    assert not found.reward_spread.known


def by_the_seed(request):
    """Let every take succeed or not as the seed of the reply falls."""
    state, action = question(flat_prompt(request.prompt))
    won = action.startswith("take") and request.seed % 2 == 0
    return told(state, HELD if won else state, done=won, success=won, reward=float(won))


@pytest.mark.parametrize(("shared", "lucky"), [(True, False), (False, True)])
def test_only_replies_that_episodes_do_not_share_are_luck(shared, lucky):
    world = DreamWorld(
        ExperienceModel(ScriptedLLM(by_the_seed), temperature=1.0, retries=0), share_answers=shared
    )

    async def measured():
        episodes = await recorded(episodes=10)
        return await measure_luck(world, episodes, memory=None, repeats=4, concurrency=4)

    found = asyncio.run(measured())
    assert found.failed == 0
    assert (found.outcome_differs.mean > 0) == lucky
