"""Samples: the questions of training are those of the dream, and their answers come true there."""

import pytest
from small_house import OPENING, transition
from test_annotate import walk
from test_dream_world import Shelf, check_against_rules, dream, play

from dreamgym.experience.annotate import annotate_by_rule
from dreamgym.experience.prompt import Style, step_answer_text, step_prompt
from dreamgym.experience.sample import samples
from dreamgym.llm import ScriptedLLM
from dreamgym.replay.lookup import Hit

ACTIONS = ("take moon", "take cup", "move west", "move east", "take spoon", "move west",
           "move north", "take coin")  # fmt: skip


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("name_pages", [True, False])
def test_training_and_dreaming_ask_the_same(style, name_pages):
    """A model that has learnt every sample by heart dreams the recorded episode."""
    trajectory = annotate_by_rule(walk("real", ACTIONS))
    hits = (Hit(transition(OPENING, "take spoon", task_id="house#9"), 0.9, 1),)
    found = list(samples(trajectory, look_up=lambda one: hits, name_pages=name_pages))
    learnt = {
        step_prompt(sample.query, style=style): step_answer_text(sample.answer, style=style)
        for sample in found
    }
    llm = ScriptedLLM(lambda request: learnt[request.prompt])
    dreamed = play(dream(llm, style=style), ACTIONS, memory=Shelf(*hits))
    check_against_rules(dreamed)
    assert dreamed.success
    named = [sample for sample in found if sample.answer.edit.page == "kitchen"]
    assert bool(named) == name_pages


def test_a_reference_from_the_own_trajectory_is_refused():
    trajectory = walk("t-house#0", ("take cup",))
    hit = Hit(transition(OPENING, "take cup"), 0.9, 1)
    with pytest.raises(ValueError, match="own trajectory"):
        list(samples(trajectory, look_up=lambda one: (hit,)))
