"""Standing where a recorded episode stood: the same answers as if one had walked there."""

import asyncio

import pytest
from small_house import OPENING, TASK, WAY, perfect, rules, transition

from dreamgym.errors import EnvError
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style
from dreamgym.experience.world import DreamWorld
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.replay.lookup import Hit
from dreamgym.types import Action, Observation, Opening, Step, StepResult

START = Opening(TASK, Observation(OPENING))


class Shelf:
    """A memory that keeps what it was told to leave out."""

    def __init__(self, *hits):
        self.hits = hits
        self.excluded = []

    def search(self, state, action, *, k, exclude_trajectory=None):
        self.excluded.append(exclude_trajectory)
        return tuple(h for h in self.hits if h.transition.trajectory_id != exclude_trajectory)


def recorded(actions):
    state, steps = OPENING, []
    for action in actions:
        state, reward, done, success, refused = rules(state, action)
        result = StepResult(Observation(state), reward, done, False, success, refused)
        steps.append(Step(Action(action), result))
    return tuple(steps)


def house():
    llm = ScriptedLLM(lambda request: perfect(Style.FULL)(flat_prompt(request.prompt)))
    return DreamWorld(ExperienceModel(llm)), llm


def test_a_jump_asks_exactly_what_a_walk_asks():
    async def both():
        past = ("dance", "take cup", "move west")
        walked, llm = house()
        env = await walked.open(TASK)
        await env.reset(0)
        for action in past:
            await env.step(action)
        await env.step("move north")
        jumped, other = house()
        env = await jumped.open(TASK)
        env.jump(START, recorded(past))
        result = await env.step("move north")
        return llm.requests[-1], other.requests[-1], result

    asked, asked_after_jump, result = asyncio.run(both())
    assert asked == asked_after_jump
    assert result.observation.text == rules(recorded(("take cup", "move west"))[-1]
                                            .result.observation.text, "move north")[0]  # fmt: skip


def test_a_walk_finds_the_answer_that_a_jump_left_in_the_cache():
    async def both():
        world, llm = house()
        env = await world.open(TASK)
        env.jump(START, recorded(WAY[:2]))
        await env.predict(WAY[2])
        asked = len(llm.requests)
        await env.step(WAY[2])
        return asked, len(llm.requests)

    before, after = asyncio.run(both())
    assert before == after == 1


def test_a_prediction_leaves_the_episode_where_it_is():
    async def once():
        world, _ = house()
        env = await world.open(TASK)
        env.jump(START)
        first = await env.predict("move west")
        again = await env.predict("take cup")
        return first, again

    first, again = asyncio.run(once())
    assert first.next_state.startswith("hall")
    assert again.next_state.startswith("kitchen")


def test_the_own_trajectory_is_never_looked_up_and_its_answers_stay_apart():
    own = transition(OPENING, "take cup")
    memory = Shelf(Hit(own, 1.0, 1))

    async def twice():
        world, llm = house()
        for without in (own.trajectory_id, None):
            env = await world.open(TASK, memory, without=without)
            env.jump(START)
            await env.step("take cup")
        return [flat_prompt(request.prompt) for request in llm.requests]

    alone, shown = asyncio.run(twice())
    assert memory.excluded == [own.trajectory_id, None]
    assert "Recorded steps, most similar first" not in alone
    assert "Recorded steps, most similar first" in shown


def test_after_the_end_there_is_nothing_to_ask():
    async def once():
        world, _ = house()
        env = await world.open(TASK)
        env.jump(START, recorded(WAY))
        await env.predict("dance")

    with pytest.raises(EnvError, match="over"):
        asyncio.run(once())
