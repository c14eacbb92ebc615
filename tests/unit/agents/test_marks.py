"""Marks at names: of places where an episode has been, and of what its goal speaks of."""

from dataclasses import replace

import pytest

from dreamgym.agents.marks import Marks, action_marks, marked, without_marks
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.agents.policy_prompt import Format
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.agents.policy_writers import writer_for
from dreamgym.types import Observation

ROOMS = [
    "kitchen\nnorth: hall; east: pantry",
    "hall\nsouth: kitchen; west: back hall",
    "kitchen\nnorth: hall; east: pantry\n> you are in the kitchen",
]
HOUSE = [
    "at drawer 1 closed\ncarrying: nothing\nplaces: drawer 1, drawer 12, shelf 1",
    "at shelf 1: cup 1\ncarrying: nothing\nplaces: drawer 1, drawer 12, shelf 1",
]


SEEN, GOAL, BOTH = Marks(seen=True), Marks(goal=True), Marks(seen=True, goal=True)


def texts(states, marks=SEEN, goal="g"):
    return [now.text for now in marked(goal, [Observation(text) for text in states], marks)]


def test_places_of_earlier_states_are_marked_and_what_was_said_is_not():
    assert texts(ROOMS) == [
        "kitchen\nnorth: hall; east: pantry",
        "hall\nsouth: kitchen *; west: back hall",
        "kitchen *\nnorth: hall *; east: pantry\n> you are in the kitchen",
    ]


def test_a_place_is_known_without_the_words_around_its_name():
    assert texts(HOUSE)[1].endswith("places: drawer 1 *, drawer 12, shelf 1")


def test_what_was_written_stays_while_the_episode_grows():
    whole = texts(ROOMS * 3)
    assert all(texts((ROOMS * 3)[:length]) == whole[:length] for length in range(9))


@pytest.mark.parametrize("strange", ["", "\n", "> hm", "*", "a*b (c"])
def test_no_state_is_too_strange(strange):
    states = [strange, *ROOMS, strange]
    told = texts(states)
    assert [text.replace(" *", "") for text in told] == [text.replace(" *", "") for text in states]


def test_a_name_that_begins_a_longer_one_is_another():
    told = texts(["kitchen\nkitchen cupboard: closed"] * 2)
    assert told[1] == "kitchen *\nkitchen cupboard: closed"


def test_what_the_goal_speaks_of_is_marked_with_its_number():
    goal = "put some cup in drawer"
    assert texts(HOUSE, GOAL, goal) == [
        "at drawer 1 ! closed\ncarrying: nothing\nplaces: drawer 1 !, drawer 12 !, shelf 1",
        "at shelf 1: cup 1 !\ncarrying: nothing\nplaces: drawer 1 !, drawer 12 !, shelf 1",
    ]


def test_a_name_of_the_goal_is_a_whole_name_of_the_state():
    assert texts(["hall\nwest: back hall"], GOAL, "to the hall") == ["hall !\nwest: back hall"]


def test_both_marks_stand_side_by_side():
    told = texts(ROOMS, BOTH, "find the kitchen")
    assert told[1] == "hall\nsouth: kitchen * !; west: back hall"
    assert told[2] == "kitchen * !\nnorth: hall *; east: pantry\n> you are in the kitchen"


def test_places_with_a_status_are_known_under_both_marks():
    told = texts([HOUSE[0], HOUSE[0]], BOTH, "open a drawer")
    assert told[1].startswith("at drawer 1 * ! closed")


def test_a_goal_without_words_marks_nothing():
    assert texts(ROOMS, GOAL, "") == texts(ROOMS, GOAL, "?!") == ROOMS


@pytest.mark.parametrize(("field", "found"), [("mark_seen", "kitchen *"), ("mark_goal", "hall !")])
def test_a_card_asks_for_marks_in_every_format(field, found):
    states = [Observation(text) for text in ROOMS]
    for form in Format:
        card = PolicyCard("e", format=form, **{field: True})
        prompt = writer_for(card, Letters(), positions=4000).prompt(
            "to the hall", [(states[0], (9, 0))], states[1]
        )
        assert found in Letters().decode(prompt), form


class Letters:
    """Spells every character by its number."""

    end_ids = frozenset({0})

    def encode(self, text):
        return [ord(letter) for letter in text]

    def decode(self, ids, *, skip_special=False):
        return "".join(map(chr, ids))

    def prompt_ids(self, prompt):
        parts = [prompt] if isinstance(prompt, str) else [one.content + "\0" for one in prompt]
        return self.encode("".join(parts))


def test_a_writer_marks_only_when_asked():
    states = [Observation(text) for text in ROOMS]
    past = [(state, (ord("x"), 0)) for state in states[:2]]
    plain, with_marks = (
        CompactWriter(Letters(), 500, 10, marks=wanted).prompt("g", past, states[2])
        for wanted in (Marks(), SEEN)
    )
    assert "*" not in Letters().decode(plain)
    assert (
        Letters()
        .decode(with_marks)
        .endswith("<state>kitchen *\nnorth: hall *; east: pantry\n> you are in the kitchen<act>")
    )


ALL_MARKS = Marks(seen=True, goal=True, actions=True)


def told(actions, states, goal, marks=ALL_MARKS):
    done = ["look"] * (len(states) - 1)
    bears = action_marks(goal, [Observation(text) for text in states], done, marks)
    return [bears.on(action) for action in actions]


def test_actions_bear_the_marks_of_the_names_in_them():
    actions = ["go to drawer 1", "go to drawer 12", "take cup 1 from shelf 1", "look"]
    assert told(actions, HOUSE, "put some cup in drawer") == [
        "go to drawer 1 * !",
        "go to drawer 12 !",
        "take cup 1 ! from shelf 1",
        "look",
    ]


def test_a_direction_bears_the_marks_of_where_it_leads():
    actions = ["move south", "move west", "open kitchen"]
    assert told(actions, ROOMS[:2], "find the kitchen") == [
        "move south * !",
        "move west",
        "open kitchen * !",
    ]


def test_a_word_of_a_longer_name_bears_nothing():
    assert told(["go to drawer 1"], ["places: drawer 12"], "to drawer 12") == ["go to drawer 1"]


@pytest.mark.parametrize("marks", [Marks(), BOTH, Marks(actions=True)])
def test_actions_stay_as_they_are_unless_marks_are_wanted_on_them(marks):
    assert told(["go to drawer 1"], HOUSE, "put some cup in drawer", marks) == ["go to drawer 1"]


@pytest.mark.parametrize("action", ["go to drawer 1", "say hello !there", "take a*b", "* x"])
def test_marks_of_an_action_come_off_again(action):
    assert without_marks(f"{action} * !", ALL_MARKS) == action
    assert without_marks(f"{action} * ! ~", replace(ALL_MARKS, tried=True)) == action
    for marks in (Marks(), Marks(seen=True), Marks(tried=True), ALL_MARKS):
        assert without_marks(action, marks) == action


def test_only_marks_that_a_policy_bears_come_off():
    assert without_marks("cd ~", ALL_MARKS) == "cd ~"
    assert without_marks("ls * -l", Marks(tried=True)) == "ls * -l"
    assert without_marks("scp a ~ b ~", Marks(tried=True)) == "scp a ~ b"


SHELVES = [
    "den\nshelf: empty; tray: empty\ncarrying: cup",
    "den\nshelf: cup; tray: empty",
    "den\nshelf: empty; tray: empty\ncarrying: cup\n> you took it",
]


TRIES = Marks(tried=True)


def tried(done, states, marks=TRIES):
    bears = action_marks("tidy up", [Observation(text) for text in states], done, marks)
    return [bears.on(action) for action in ("put cup in shelf", "put cup in tray", "take cup")]


def test_an_action_bears_a_mark_where_it_was_done_in_the_very_same_state():
    done = ["put cup in shelf", "take cup"]
    # What was said is about one moment: the state is the same without it.
    assert tried(done, SHELVES) == ["put cup in shelf ~", "put cup in tray", "take cup"]
    assert tried(done[:1], SHELVES[:2]) == ["put cup in shelf", "put cup in tray", "take cup"]


def test_tries_are_marked_beside_names():
    marks = Marks(goal=True, actions=True, tried=True)
    bears = action_marks(
        "a cup on the tray", [Observation(text) for text in SHELVES], ["put cup in tray"] * 2, marks
    )
    assert bears.on("put cup in tray") == "put cup ! in tray ! ~"


def test_tries_are_not_marked_unless_wanted():
    for marks in (Marks(), Marks(seen=True), Marks(goal=True, actions=True)):
        assert not any("~" in action for action in tried(["put cup in shelf"] * 2, SHELVES, marks))


def test_what_a_policy_writes_with_marks_is_carried_out_without():
    states = [Observation(text) for text in HOUSE]
    for form in Format:
        marks = {"mark_seen": True, "mark_goal": True, "mark_actions": True, "mark_tried": True}
        card = PolicyCard("e", format=form, **marks)
        writer = writer_for(card, Letters(), positions=4000)
        done = ["look"] * (len(states) - 1)
        said = writer.answer("go to drawer 1", writer.marks_for("find a drawer", states, done))
        assert "drawer 1 * !" in Letters().decode(said)
        assert writer.action(said) == "go to drawer 1"
        again = writer.answer("look", writer.marks_for("find", [states[0]] * 2, ["look"]))
        assert "look ~" in Letters().decode(again)
        assert writer.action(again) == "look"
