"""The three jobs over a scripted back end: retries, sureness, new tasks; and over a real store."""

import asyncio
import json
import math

import pytest
from small_house import GOAL, OPENING, TASK, WAY, perfect
from test_annotate import walk
from test_dream_world import check_against_rules, dream, play, playing

from dreamgym.errors import ReplyFormatError
from dreamgym.experience import ExperienceModel, Pessimism, StepQuery, Style, Switches
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.sample import samples
from dreamgym.experience.task_prompt import Example, Variation
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.replay.buffer import open_store
from dreamgym.types import Completion, Origin, Prediction, SampledTokens, StopReason

QUERY = StepQuery(GOAL, OPENING, "take cup")
TAKEN = "kitchen\nspoon\nwest: hall\ncarrying: cup\n> you take the cup"
COMPACT = "cup at #1<then><ok>-1\n|4 carrying: cup\n> you take the cup<cont><end>"


def predict(model, query=QUERY, **options):
    return asyncio.run(model.predict(query, **options))


def test_a_compact_reply_is_a_prediction():
    llm = ScriptedLLM([COMPACT])
    prediction = predict(ExperienceModel(llm, style=Style.COMPACT), seed=7)
    assert prediction == Prediction("cup at #1", TAKEN)
    (request,) = llm.requests
    assert request.stop == ("<end>",)
    assert request.seed is None, "nothing is sampled at temperature 0"


@pytest.mark.parametrize("hints", [True, False])
def test_a_model_with_hints_is_told_what_the_goal_lacks(hints):
    llm, goals = ScriptedLLM([COMPACT]), GoalNeeds(frozenset({f"{GOAL.split()[0]} hot"}))
    switches = Switches(hints=hints)
    predict(ExperienceModel(llm, style=Style.COMPACT, switches=switches, goals=goals))
    assert ("goal lacks hot" in llm.requests[0].prompt) == hints
    (sample,) = samples(walk("real", ("take cup",)), goals=goals)
    assert sample.query.lacking == ("hot",), "a lesson says the same"


def test_a_small_model_tries_again_by_sampling_and_a_chat_model_by_reading_its_mistake():
    small = ScriptedLLM(["<then>?", COMPACT])
    assert predict(ExperienceModel(small, style=Style.COMPACT)).next_state == TAKEN
    first, second = small.requests
    assert second.prompt == first.prompt
    assert (second.temperature, second.seed) == (0.7, 1)
    large = ScriptedLLM(["hm", perfect(Style.FULL)(flat_prompt_of(QUERY))])
    assert predict(ExperienceModel(large)).next_state == TAKEN
    assert "could not be read" in flat_prompt(large.requests[1].prompt)


def flat_prompt_of(query):
    from dreamgym.experience.prompt import step_prompt

    return flat_prompt(step_prompt(query, style=Style.FULL))


def test_an_edit_that_does_not_fit_is_a_reply_that_cannot_be_read():
    llm = ScriptedLLM(["x<then><ok>=9 y<cont>"] * 2)
    with pytest.raises(ReplyFormatError, match="items are #0 to #3"):
        predict(ExperienceModel(llm, style=Style.COMPACT, retries=1))


def test_sureness_is_that_of_the_least_sure_token():
    tokens = SampledTokens((1, 2), (math.log(0.9), math.log(0.4)))

    def unsure():
        return ScriptedLLM([Completion(COMPACT, "m", tokens=tokens)])

    prediction = predict(ExperienceModel(unsure(), style=Style.COMPACT))
    assert prediction.confidence == pytest.approx(0.4)
    world = dream(unsure(), style=Style.COMPACT, pessimism=Pessimism(min_confidence=0.5))
    trajectory = play(world, ("take cup",))
    assert trajectory.stop is StopReason.TRUNCATED
    assert trajectory.steps[0].reasoning.startswith(
        f"[{Origin.UNKNOWN}] unsure: the reply is only 0.40 sure"
    )


def test_new_tasks_and_first_states():
    new = {"goal": "take the rake", "first_state": OPENING}
    llm = ScriptedLLM([json.dumps([new]), json.dumps([new, new]), f"<state>{OPENING}</state>"])
    model = ExperienceModel(llm)

    async def jobs():
        made = await model.vary([Example(GOAL, OPENING)], count=2, seed=1)
        return made, await model.first_state(TASK, [Example(GOAL, OPENING)])

    made, first = asyncio.run(jobs())
    assert made == (Variation("take the rake", OPENING),) * 2
    assert "2 variations was asked for, this is 1" in flat_prompt(llm.requests[1].prompt)
    assert first == OPENING


def test_prompts_of_other_switches_have_other_digests():
    llm = ScriptedLLM([])
    models = [
        ExperienceModel(llm),
        ExperienceModel(llm, style=Style.COMPACT),
        ExperienceModel(llm, switches=Switches(history=False)),
    ]
    assert len({model.prompt_digest for model in models}) == 3


def test_references_come_from_a_store_and_their_ids_are_recorded(tmp_path):
    with open_store(tmp_path / "experience.sqlite") as store:
        store.add([walk("past")])
        llm = playing()
        trajectory = play(dream(llm, references=2), WAY, memory=store)
    check_against_rules(trajectory)
    first = trajectory.steps[0]
    assert len(first.references) == 2
    assert all(reference.startswith("past#") for reference in first.references)
    assert "Recorded steps" in flat_prompt(llm.requests[0].prompt)
    # The same task was walked before, so the pages come from there.
    assert first.reasoning.startswith("[reference]")
