import pytest

from dreamgym.envs.textworld.mapper import (
    Scene,
    clean_feedback,
    entities_in,
    read_note,
    read_scene,
    render_state,
)

NAMES = {
    "P": None,
    "I": None,
    "r_0": "kitchen",
    "r_1": "living room",
    "r_2": "pantry",
    "d_0": "screen door",
    "c_0": "fridge",
    "c_1": "chest",
    "s_0": "table",
    "stove_0": "stove",
    "toaster_0": "BBQ",
    "f_0": "red potato",
    "f_1": "milk",
    "f_2": "pork chop",
    "o_0": "knife",
    "o_1": "hidden coin",
    "o_2": "far lamp",
}
FACTS = [
    ("at", ("P", "r_0")),
    ("at", ("c_0", "r_0")),
    ("at", ("c_1", "r_0")),
    ("at", ("s_0", "r_0")),
    ("at", ("stove_0", "r_0")),
    ("at", ("toaster_0", "r_0")),
    ("at", ("o_2", "r_1")),
    ("open", ("c_0",)),
    ("locked", ("c_1",)),
    ("in", ("f_1", "c_0")),
    ("in", ("o_1", "c_1")),
    ("in", ("o_0", "I")),
    ("in", ("f_0", "I")),
    ("on", ("f_2", "s_0")),
    ("needs_cooking", ("f_2",)),
    ("roasted", ("f_0",)),
    ("sliced", ("f_0",)),
    ("west_of", ("r_1", "r_0")),
    ("east_of", ("r_0", "r_1")),
    ("north_of", ("r_2", "r_0")),
    ("link", ("r_0", "d_0", "r_1")),
    ("closed", ("d_0",)),
    ("free", ("slot_0",)),
]
STATE = """\
kitchen
here: BBQ; chest (locked); fridge (open, in it: milk); stove (on it: nothing); \
table (on it: raw pork chop)
exits: north; west (closed screen door)
carrying: knife, sliced roasted red potato"""


def test_a_scene_holds_what_is_in_sight_and_nothing_else():
    text = render_state(read_scene(FACTS, NAMES))
    assert text == STATE
    assert "hidden coin" not in text
    assert "far lamp" not in text


def test_the_order_of_facts_does_not_matter():
    assert read_scene(reversed(FACTS), NAMES) == read_scene(FACTS, NAMES)


def test_burned_food_says_so_whatever_it_was_cooked_as():
    scene = read_scene([*FACTS, ("burned", ("f_0",))], NAMES)
    assert "sliced burned red potato" in scene.carrying


def test_feedback_ending_and_notes_surround_the_scene():
    scene = Scene("attic", (), (), ())
    text = render_state(scene, feedback="You eat it.", notes=["a", "b"], ending="You lost.")
    assert text == (
        "attic\nhere: nothing\nexits: none\ncarrying: nothing\n"
        "read: a\nread: b\n> You eat it.\n> You lost."
    )


PROMPT = "\n\n>                         -= Kitchen =-5/8"
END = """
You eat the meal. Not bad.


                       *** The End ***

You scored 5 out of a possible 5, in 10 turns.


Would you like to RESTART, RESTORE a saved game, QUIT or UNDO the last command?"""


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("\nOpened.\n\n\nYour score has just gone up by one point.", "Opened."),
        ("\n\n-= Kitchen =-\nWell how about that.\n\nYou see a stove.", ""),
        ("\nYou are carrying: a knife and a potato.", ""),
        (END, "You eat the meal. Not bad."),
        ("\nYou can't see any such thing.", "You can't see any such thing."),
    ],
)
def test_of_an_answer_only_the_news_is_kept(raw, said):
    assert clean_feedback(raw + PROMPT) == said


def test_a_recipe_is_kept_with_its_ingredients_and_directions():
    raw = """
You open the copy of 'Cooking: A Modern Approach (3rd Ed.)' and start reading:

Recipe #1
---------
Gather all following ingredients and follow the directions to prepare this tasty meal.

Ingredients:
  red potato
  milk

Directions:
  slice the red potato
  prepare meal


>                  -= Kitchen =-0/3"""
    note = read_note(raw)
    assert note == "recipe of red potato, milk. Directions: slice the red potato, prepare meal."


def test_another_note_is_kept_as_it_is():
    assert read_note("\nIt's only missing a grilled milk.\n\n>  -= Kitchen =-0/3") == (
        "It's only missing a grilled milk."
    )


def test_entities_are_the_things_without_what_was_done_to_them():
    assert entities_in(STATE) == {
        "kitchen", "screen door", "bbq".upper(), "chest", "fridge", "milk", "stove", "table",
        "pork chop", "knife", "red potato",
    }  # fmt: skip


def test_an_empty_room_has_itself_only():
    assert entities_in(render_state(Scene("attic", ("north",), (), ()))) == {"attic"}
