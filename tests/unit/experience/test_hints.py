"""What a rule tells a small model about references and goals."""

from dataclasses import replace

import pytest
from small_house import OPENING, transition

from dreamgym.experience.hints import differences, goal_hint
from dreamgym.experience.prompt import StepQuery, Style, Switches, step_prompt
from dreamgym.replay.lookup import Hit

CLEAN = "at sink 1: cup 1\ncarrying: mug 2 (clean)\nplaces: shelf 1, sink 1"
DIRTY = "at sink 1: cup 1\ncarrying: mug 2\nplaces: shelf 1, sink 1\n> arrived at sink 1"


def test_a_state_differs_in_its_items_and_not_in_what_was_said():
    assert differences(CLEAN, DIRTY) == "carrying: mug 2; no carrying: mug 2 (clean)"
    assert differences("hall\ncup; hat", "hall\ncup") == "no hat"
    assert differences(DIRTY, DIRTY.replace("arrived", "came")) == ""


@pytest.mark.parametrize(
    ("goal", "action", "expected"),
    [
        ("put a clean mug in sink", "move mug 2 to sink 1", "clean mug sink"),
        ("put a hot cup on shelf", "move mug 2 to sink 1", ""),
        ("examine the mug with the lamp", "look", "mug"),
        ("", "move mug 2 to sink 1", ""),
    ],
)
def test_words_of_the_goal_that_are_near(goal, action, expected):
    assert goal_hint(goal, CLEAN, action, lacking=None) == f"goal: {expected}"


def test_a_hint_says_what_a_goal_lacks_where_that_is_known():
    def told(*lacking):
        return goal_hint("put a hot mug in sink", CLEAN, "move mug 2 to sink 1", lacking=lacking)

    assert told() == "goal has all: mug sink"
    assert told("hot", "two") == "goal lacks hot two: mug sink"


def test_hints_are_in_the_prompt_only_when_asked_for():
    recorded = replace(transition(OPENING, "take cup"), task_id="t", state="hall\ncup; hat")
    query = StepQuery("find the cup", "hall\ncup", "take cup", references=(Hit(recorded, 1.0, 1),),
                      task_id="t")  # fmt: skip
    plain, hinted = (
        step_prompt(query, style=Style.COMPACT, switches=Switches(hints=wanted))
        for wanted in (False, True)
    )
    assert "<same><act>take cup" in plain
    assert "goal: cup" not in plain
    assert "<same>hat<act>take cup" in hinted
    assert "goal: cup" in hinted
