"""First states and variations in the compact style: prompts, answers, who is asked."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_house import GOAL, OPENING, TASK, page

from dreamgym.errors import JobNotTaught, ReplyFormatError
from dreamgym.experience import ExperienceModel, Style
from dreamgym.experience.prompt import MARKS
from dreamgym.experience.task_prompt import (
    MOST_EXAMPLES,
    MOST_PLACES,
    TASK_PROMPT_DIGEST,
    Example,
    Job,
    Variation,
    first_state_prompt,
    first_state_text,
    one_variation_prompt,
    one_variation_text,
    read_first_state,
    read_one_variation,
    read_variations,
    variations_text,
)
from dreamgym.llm import ScriptedLLM

GOLDEN = Path(__file__).parents[2] / "golden/experience"
HOUSE = Example(GOAL, OPENING, (page("hall"), page("garden")))
BARE = Example(GOAL, OPENING)
RAKE = Example("take the rake", page("garden"))
CASES = {
    "first_state_compact": first_state_prompt(TASK, [BARE, RAKE], style=Style.COMPACT),
    "variation_compact": one_variation_prompt(HOUSE, keep_goal=True),
    "variation_compact_goal": one_variation_prompt(HOUSE, keep_goal=False),
    "variation_compact_written": one_variation_prompt(BARE, [RAKE], keep_goal=False),
}


@pytest.mark.parametrize("case", CASES)
def test_golden_compact_task_prompts(case):
    path = GOLDEN / f"{case}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(CASES[case] + "\n")
    assert CASES[case] + "\n" == path.read_text(), "the prompt changed: UPDATE_GOLDEN=1, and look"


def test_no_prompt_can_be_taken_for_one_of_a_step():
    # A step's prompt begins with its goal and goes on with anything but a page.
    for prompt in CASES.values():
        assert not prompt.startswith("<goal>")
    alone = first_state_prompt(TASK, [], style=Style.COMPACT)
    assert alone == "<goal>take the coin<page>"


@pytest.mark.parametrize("style", Style)
def test_first_states_survive_writing_and_reading(style):
    assert read_first_state(first_state_text(OPENING, style=style), style=style) == OPENING


@pytest.mark.parametrize("keep_goal", [True, False])
@pytest.mark.parametrize("source", [HOUSE, BARE])
def test_variations_survive_writing_and_reading(source, keep_goal):
    new = Variation(GOAL if keep_goal else "take the rake", page("garden"))
    text = one_variation_text(new, source, keep_goal=keep_goal)
    assert read_one_variation(text, source, keep_goal=keep_goal) == new
    assert ("coin" in text) == (source is BARE), "a place on record is only named"
    assert read_variations(variations_text([new]), count=1) == (new,)


@given(st.sampled_from(MARKS), st.sampled_from([True, False]))
def test_no_goal_and_no_state_can_write_marks(mark, keep_goal):
    marked = Example(f"take{mark}it", f"hall\ncup{mark}\n", (f"cellar{mark}\ncoin",))
    plain = Example("take it", "hall\ncup", ("cellar\ncoin",))
    given_marks = [
        one_variation_prompt(one, [one], keep_goal=keep_goal).count(mark) for one in (marked, plain)
    ]
    assert given_marks[0] == given_marks[1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("cellar<end>", "no place called 'cellar'"),
        ("hall<state>coat<end>", "a mark stands in the middle"),
        ("> hello<end>", "no line that starts with"),
    ],
)
def test_nasty_places_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        read_one_variation(text, HOUSE, keep_goal=True)


@pytest.mark.parametrize("text", ["hall<end>", "<page>hall<end>", " \n<page>hall"])
def test_a_variation_without_a_goal_is_refused(text):
    with pytest.raises(ValueError, match="a goal, then <page>"):
        read_one_variation(text, HOUSE, keep_goal=False)


def test_what_a_small_model_is_shown_has_bounds():
    wide = Example(GOAL, OPENING, tuple(f"room {n}\nchair" for n in range(MOST_PLACES + 5)))
    assert one_variation_prompt(wide, keep_goal=True).count("<same>") == MOST_PLACES
    many = [BARE] * (MOST_EXAMPLES + 2)
    assert one_variation_prompt(BARE, many, keep_goal=False).count("<refs>") == MOST_EXAMPLES


def test_lines_that_the_first_state_has_are_not_read_twice():
    tired = "carrying: nothing\nplaces: bed, desk"
    room = Example("sleep", f"middle\n{tired}", (f"at bed: pillow\n{tired}",))
    assert one_variation_prompt(room, keep_goal=True).startswith("<same>at bed: pillow<state>")
    assert read_one_variation("at bed<end>", room, keep_goal=True).first_state == room.places[0]


def model_saying(*replies, **options):
    llm = ScriptedLLM(list(replies))
    return llm, ExperienceModel(llm, style=Style.COMPACT, **options)


def vary(model, tasks=(HOUSE,), **options):
    return asyncio.run(model.vary(tasks, **options))


def test_a_small_model_varies_one_task_at_a_time_and_memory_supplies_the_place():
    llm, model = model_saying("hall<end>", "garden<end>")
    made = vary(model, count=2, seed=3)
    assert set(made) == {Variation(GOAL, page("hall"), 0), Variation(GOAL, page("garden"), 0)}
    assert [request.stop for request in llm.requests] == [("<end>",)] * 2
    assert len({request.seed for request in llm.requests}) == 2


def test_repeats_and_the_source_itself_are_drawn_again_and_there_may_be_fewer():
    llm, model = model_saying("hall", "hall", "kitchen", "cellar", "hall", "garden", "?")
    assert vary(model, count=3) == (
        Variation(GOAL, page("hall"), 0),
        Variation(GOAL, page("garden"), 0),
    )
    assert len(llm.requests) == 3 + 2 + 2


def test_several_tasks_take_turns_and_each_variation_says_whose_it_is():
    _, model = model_saying("hall", "take it<page>cellar\ncoin", "garden")
    made = vary(model, (HOUSE, BARE), count=3)
    assert [one.source for one in made] == [0, 1, 0]
    assert made[1] == Variation("take it", "cellar\ncoin", 1), "written: nothing is on record"


def test_where_goals_may_vary_the_model_is_asked_for_one():
    llm, model = model_saying("take the rake<page>kitchen", vary_goals=True)
    assert vary(model, count=1) == (Variation("take the rake", OPENING, 0),)
    assert llm.requests[0].prompt.endswith("<goal>")


def test_answers_that_cannot_be_read_at_all_are_an_error():
    _, model = model_saying(*["cellar"] * 3)
    with pytest.raises(ReplyFormatError, match="no place called 'cellar'"):
        vary(model, count=1)


def test_the_same_seed_asks_the_same_and_another_otherwise():
    asked = []
    for seed in (1, 1, 2):
        llm, model = model_saying("hall")
        vary(model, count=1, seed=seed)
        asked.append(llm.requests[0])
    assert asked[0] == asked[1] != asked[2]


def test_a_small_model_imagines_a_first_state():
    llm, model = model_saying("", "cellar\ncoin<end>")
    found = asyncio.run(model.first_state(TASK, [BARE], temperature=0.5, seed=4))
    assert found == "cellar\ncoin"
    assert [request.seed for request in llm.requests] == [4, 5], "an empty answer is drawn again"


def test_what_was_not_taught_is_an_error_that_says_what_to_do():
    _, model = model_saying(jobs=(Job.STEP,))
    with pytest.raises(JobNotTaught, match=r"'variation', only step: .*fit\.task_share above 0"):
        vary(model, count=1)
    with pytest.raises(JobNotTaught, match="'first state'"):
        asyncio.run(model.first_state(TASK))


def test_the_digest_is_apart_from_that_of_the_step():
    from dreamgym.experience.prompt import PROMPT_DIGEST

    assert len(TASK_PROMPT_DIGEST) == len(PROMPT_DIGEST)
    assert TASK_PROMPT_DIGEST != PROMPT_DIGEST
