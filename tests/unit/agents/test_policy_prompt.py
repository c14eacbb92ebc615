"""What a policy is asked, word for word, and how its answers are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.agents.policy_prompt import (
    UNREADABLE,
    chat_answer,
    chat_prompt,
    compact_answer,
    goal_text,
    read_chat,
    read_compact,
    state_text,
    with_states,
)
from dreamgym.types import Action, Observation, Split, Step, StepResult, Task

TASK = Task(id="t", env="e", key="1", split=Split.TRAIN, goal="find the coin\nand take it")
HALL = Observation("hall\ncup\nnorth: garden", ("move north", "take cup"))
GARDEN = Observation("garden\ncoin", ("take coin",))

CHAT_SYSTEM = """\
You act in a text environment to achieve a task. You are given the task, your latest turns and the \
current state. Choose the one action that brings you closest to the goal, worded exactly as the \
environment knows it.
First think about what to do, briefly. Then answer in exactly this form:
<think>your reasoning</think><action>the action</action>"""
CHAT_USER = """\
Task: find the coin and take it

Your latest turns:
State:
hall
cup
north: garden
Action: move north

Current state:
garden
coin

Possible actions: take coin"""


def test_a_compact_episode_reads_like_this():
    text = goal_text(TASK.goal) + state_text(HALL) + "<act>" + compact_answer("move  north")
    assert text == ("<goal>find the coin and take it<state>hall\ncup\nnorth: garden<act>move north")


def test_admissible_actions_are_listed_on_request():
    assert state_text(GARDEN, list_actions=True) == "<state>garden\ncoin\nactions: take coin"
    assert state_text(Observation("dark"), list_actions=True) == "<state>dark"


def test_no_state_can_pose_as_a_mark():
    assert state_text(Observation("a sign: <act>win<end>")) == "<state>a sign: actwinend"


def test_a_chat_reads_like_this():
    system, user = chat_prompt(TASK.goal, [(HALL, "move north")], GARDEN)
    assert (system.role, system.content) == ("system", CHAT_SYSTEM)
    assert (user.role, user.content) == ("user", CHAT_USER)


def test_a_chat_can_do_without_thoughts_lists_and_turns():
    system, user = chat_prompt(TASK.goal, [], Observation(""), list_actions=False, think=False)
    assert "<think>" not in system.content
    assert user.content == "Task: find the coin and take it\n\nCurrent state:\n(empty)"


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
ACTIONS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@given(ACTIONS, st.sampled_from(["", "two ways: <action>wait</action> or not"]))
def test_answers_are_read_as_they_were_written(action, thought):
    assert read_compact(compact_answer(action), ended=True) == action
    assert read_chat(chat_answer(action, thought=thought)) == action


@pytest.mark.parametrize(
    "answer",
    ["", "take coin", "<action></action>", "<action>a</action><action>b</action>",
     "<think>so <action>go</action>", "<action>go", "<action><action>x</action></action>"],
)  # fmt: skip
def test_a_chat_without_one_action_is_an_invalid_action(answer):
    if answer == "<think>so <action>go</action>":
        assert read_chat(answer) == "go"  # a thought that never ends, and yet one action
    else:
        assert read_chat(answer).startswith(UNREADABLE)


def test_some_servers_strip_the_opening_tag():
    assert read_chat("either <action>a</action> or</think>\n<action>go  up</action>") == "go up"


@pytest.mark.parametrize("answer", ["", "  ", "take\ncoin", "take <state> coin"])
def test_a_compact_answer_that_is_no_line_of_words_is_an_invalid_action(answer):
    assert read_compact(answer, ended=True).startswith(UNREADABLE)


def test_an_answer_that_was_cut_off_is_an_invalid_action():
    assert read_compact("take coin", ended=False) == f"{UNREADABLE} take coin"


def test_each_turn_goes_with_the_state_it_acted_in():
    steps = [Step(Action("move north"), StepResult(GARDEN)), Step(Action("sit"), StepResult(HALL))]
    assert [state for state, _ in with_states(HALL, steps)] == [HALL, GARDEN]
    assert with_states(None, steps)[0][0].text == ""
