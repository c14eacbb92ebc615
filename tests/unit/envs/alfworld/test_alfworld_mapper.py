"""What a state says, and in which words. Needs no ALFWorld."""

import pytest

from dreamgym.envs.alfworld.mapper import (
    Receptacle,
    View,
    by_number,
    read_goal,
    read_places,
    render,
    summarise,
)


def test_a_state_says_where_i_am_what_is_here_what_i_carry_and_where_i_can_go():
    view = View(
        here=(
            Receptacle("drawer 2", False),
            Receptacle("drawer 1", True),
            Receptacle("desk 1", None, ("pen 10", "pen 2", "desklamp 1")),
        ),
        carried=("mug 1",),
        traits={"mug 1": ("hot", "clean"), "desklamp 1": ("on",)},
        places=("drawer 2", "shelf 10", "desk 1", "shelf 9", "drawer 1"),
        feedback="You turn on the desklamp 1.",
    )
    assert render(view).splitlines() == [
        "at desk 1: desklamp 1 (on), pen 2, pen 10",
        "at drawer 1 open: nothing",
        "at drawer 2 closed",
        "carrying: mug 1 (hot, clean)",
        "places: desk 1, drawer 1, drawer 2, shelf 9, shelf 10",
        "> turned on desklamp 1",
    ]


def test_the_first_state_has_nothing_to_look_back_on():
    text = render(View(here=(), carried=(), traits={}, places=("bed 1",)))
    assert text == "at the middle of the room\ncarrying: nothing\nplaces: bed 1"


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ("Nothing happens.", "nothing happens"),
        ("You arrive at bed 1. On the bed 1, you see a book 1.", "arrived at bed 1"),
        ("You arrive at safe 1. The safe 1 is closed.", "arrived at safe 1"),
        ("You open the safe 1. The safe 1 is open. In it, you see nothing.", "opened safe 1"),
        ("You close the safe 1.", "closed safe 1"),
        ("You pick up the cd 2 from the desk 1.", "took cd 2 from desk 1"),
        ("You move the cd 2 to the safe 1.", "moved cd 2 to safe 1"),
        ("You heat the egg 1 using the microwave 1.", "heated egg 1 with microwave 1"),
        ("You cool the egg 1 using the fridge 1.", "cooled egg 1 with fridge 1"),
        ("You clean the egg 1 using the sinkbasin 1.", "cleaned egg 1 with sinkbasin 1"),
        ("You turn on the desklamp 1.", "turned on desklamp 1"),
        ("You sliced the apple 1 with the knife 1.", "sliced apple 1 with knife 1"),
        ("You are carrying: a egg 1.", "checked what is carried"),
        ("You are not carrying anything.", "checked what is carried"),
        ("You are facing the bed 1. Next to it, you see nothing.", "looked around"),
        ("You are in the middle of a room. Looking quickly around you, ...", "looked around"),
        ("On the bed 1, you see a book 1.", "examined bed 1"),
        ("The safe 1 is open. In it, you see nothing.", "examined safe 1"),
        ("Available commands:\n  look:  look around", "read the list of commands"),
        ("This is a hot and clean egg 1.", "This is a hot and clean egg 1."),
        ("There's nothing special about egg 1.", "There's nothing special about egg 1."),
    ],
)
def test_feedback_in_few_words(feedback, words):
    assert summarise(feedback) == words


def test_names_sort_by_number_and_odd_names_sort_too():
    names = ["cabinet 10", "cabinet 2", "bed 1", "odd"]
    assert sorted(names, key=by_number) == ["bed 1", "cabinet 2", "cabinet 10", "odd"]


def test_goal_and_places_are_read_back():
    intro = "-= Welcome =-\n\nYou see a bed 1.\n\nYour task is to: put a cd in safe."
    assert read_goal(intro) == "put a cd in safe"
    assert read_goal("no goal here") == ""
    view = View(here=(), carried=(), traits={}, places=("safe 1", "bed 1"))
    assert read_places(render(view)) == ("bed 1", "safe 1")
    assert read_places("something else") == ()
