"""Pointing at the things of an action instead of copying their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_house import GOAL, OPENING, transition

from dreamgym.experience.placeholders import named, pointed, things_of
from dreamgym.experience.prompt import (
    StepQuery,
    Style,
    Switches,
    answer_of,
    read_step_answer,
    step_answer_text,
    step_prompt,
)

POINTING = Switches(placeholders=True)


def test_things_stand_as_they_are_written_in_the_action():
    assert things_of("put TV remote in tv stand") == ("TV remote", "tv stand")
    assert things_of("take the red cup") == ("red cup",)
    assert things_of("press 3") == (), "a bare number is no name"
    assert things_of("put cup in cup") == ("cup",)
    assert things_of("look") == ()


def test_whole_names_are_pointed_at_the_longest_first():
    action = "put oil in peanut oil"
    assert pointed("oil, peanut oil, oils", action) == "<1>, <2>, oils"
    assert named("<1>, <2>, oils", action) == "oil, peanut oil, oils"


def test_pointing_at_nothing_is_an_answer_that_cannot_be_read():
    with pytest.raises(ValueError, match="<2> is nothing: the action is about 1 things"):
        named("carrying: <2>", "take cup")


WORDS = st.lists(st.sampled_from(["cup", "red cup", "box", "in", "Box", "7", ",", ";"]), max_size=8)


@given(WORDS, WORDS)
def test_names_come_back_whatever_the_text(action, text):
    acted = " ".join(["take", *action])
    assert named(pointed(" ".join(text), acted), acted) == " ".join(text)


def test_prompts_and_answers_point_where_the_switch_says_so():
    one = transition(OPENING, "take cup")
    query = StepQuery(GOAL, one.state, one.action)
    prompt = step_prompt(query, style=Style.COMPACT, switches=POINTING)
    assert "<at><1> at #" in prompt
    assert "<act>take cup" in prompt
    answer = answer_of(one, reasoning="the cup is there")
    text = step_answer_text(answer, style=Style.COMPACT, switches=POINTING, action=one.action)
    assert "cup" not in text
    assert "<1>" in text
    again = read_step_answer(text, style=Style.COMPACT, switches=POINTING, action=one.action)
    assert again == answer
