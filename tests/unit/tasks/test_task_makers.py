"""Who makes new tasks: what the model is asked, and what the record alone gives."""

import asyncio
import json

from made_groups import opening_of

from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style
from dreamgym.experience.task_prompt import Example, Variation
from dreamgym.llm.prompt import flat_prompt
from dreamgym.llm.scripted import ScriptedLLM
from dreamgym.tasks.makers import ModelMaker, RecordedStarts

SOURCE, OTHERS = opening_of(0), (opening_of(1), opening_of(2))


def asked(llm):
    return [flat_prompt(request.prompt) for request in llm.requests]


def test_goal_and_first_state_are_made_together():
    reply = json.dumps([{"goal": "bring the map", "first_state": "hall\nbox: empty"}])
    llm = ScriptedLLM([reply])
    made = asyncio.run(ModelMaker(ExperienceModel(llm)).vary(SOURCE, OTHERS, count=1, seed=3))
    assert [(one.goal, one.first_state) for one in made] == [("bring the map", "hall\nbox: empty")]
    assert SOURCE.task.goal in asked(llm)[0]
    assert OTHERS[1].observation.text in asked(llm)[0]
    assert (llm.requests[0].temperature, llm.requests[0].seed) == (1.0, 3)


def test_where_all_goals_are_one_the_variation_is_a_new_first_state():
    llm = ScriptedLLM(["<state>hall</state>", "<state>attic</state>"])
    maker = ModelMaker(ExperienceModel(llm), one_goal=True, temperature=0.8)
    made = asyncio.run(maker.vary(SOURCE, OTHERS, count=2, seed=3))
    assert [one.first_state for one in made] == ["hall", "attic"]
    assert {one.goal for one in made} == {SOURCE.task.goal}
    first, second = llm.requests
    assert first.temperature == 0.8
    assert first.seed != second.seed
    assert SOURCE.observation.text in asked(llm)[0]


def test_a_small_model_names_a_place_of_the_source_and_the_record_gives_it():
    llm = ScriptedLLM(lambda request: "cellar")
    maker = ModelMaker(
        ExperienceModel(llm, style=Style.COMPACT),
        known=lambda one: Example(one.task.goal, one.observation.text, ("cellar\nrope", "den")),
    )
    made = asyncio.run(maker.vary(SOURCE, OTHERS, count=1, seed=3))
    assert [(one.goal, one.first_state) for one in made] == [(SOURCE.task.goal, "cellar\nrope")]


def test_a_first_state_can_be_asked_for_again():
    llm = ScriptedLLM(["<state>cellar</state>"])
    maker = ModelMaker(ExperienceModel(llm))
    again = asyncio.run(maker.open_anew(Variation("find it", "bad"), (SOURCE,), seed=1))
    assert again == Variation("find it", "cellar")
    assert "find it" in asked(llm)[0]


def test_the_record_gives_other_places_to_begin_in():
    places = tuple(f"room {number}" for number in range(5))
    maker = RecordedStarts(lambda one: Example(one.task.goal, one.observation.text, places))
    made = asyncio.run(maker.vary(SOURCE, (), count=3, seed=1))
    assert len({one.first_state for one in made} & set(places)) == 3
    assert made == asyncio.run(maker.vary(SOURCE, (), count=3, seed=1))
    assert len(asyncio.run(maker.vary(SOURCE, (), count=9, seed=2))) == 5
    assert asyncio.run(maker.open_anew(made[0], (SOURCE,), seed=1)) is None
