"""Where a thing stands in a state."""

import pytest

from dreamgym.experience.roles import (
    ABSENT,
    Trial,
    headings,
    never_together,
    never_worked,
    role,
    situation,
)

HOUSE = "at safe 1 open: cup 1\ncarrying 1/2: red hat\nplaces: bed 1, safe 1"
LAYOUT = frozenset({"places"})


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("safe 1", "at _ open: | places: _"),
        ("cup 1", "_: _"),
        ("red hat", "carrying: _"),
        ("bed 1", "places: _"),
        ("moon", ABSENT),
        ("hat", "carrying: _"),
    ],
)
def test_a_role_says_how_a_thing_stands(phrase, expected):
    assert role(HOUSE, phrase, LAYOUT) == expected


def test_open_and_closed_are_told_apart():
    assert role("trunk: closed", "trunk", LAYOUT) == "_: closed"
    assert role("trunk open: empty", "trunk", LAYOUT) == "_ open:"


def test_what_was_said_puts_nothing_anywhere():
    assert role("hall\n> the cup is gone", "cup", LAYOUT) == ABSENT


def test_headings_of_half_the_states_belong_to_the_layout_and_numbered_things_never():
    states = ["at bed 1: cup 1\nplaces: bed 1", "at bed 1: empty\nplaces: bed 1; shelf: empty"]
    assert headings([*states, "hall"]) == {"places"}
    assert headings([]) == frozenset()


def test_a_situation_has_roles_and_hands_and_says_what_is_put_into_itself():
    state = "box: empty\ncarrying: pen"
    assert situation(state, "put pen in box", LAYOUT) == "put _ in _; carrying: _; _:; full"
    assert situation(state, "put box in box", LAYOUT).endswith("; same")


def trial(state, action, refused):
    return Trial.of(state, action, refused=refused, layout=LAYOUT)


def test_one_success_outweighs_any_number_of_refusals():
    tried = [trial("lamp", "take lamp", True)] * 9
    assert never_worked(tried, times=9)
    assert not never_worked(tried, times=10)
    assert not never_worked([*tried, trial("vase", "take vase", False)], times=9)


def test_things_that_stood_right_and_never_went_together_do_not():
    def put(thing, place, refused, held=True):
        carried = thing if held else "hat 1"
        return trial(f"{place}: empty\ncarrying: {carried}", f"put {thing} in {place}", refused)

    tried = [put("pillow 1", "sink 1", True), put("pillow 2", "sink 1", True)]
    worked = [put("cup 1", "sink 1", False), put("pillow 1", "bed 1", False)]
    assert never_together([*tried, *worked], times=2) == {"put _ in _; pillow; sink"}
    assert not never_together([*tried, *worked], times=3), "too seldom"
    assert not never_together(tried, times=2), "nothing ever worked there"
    assert not never_together([*tried, *worked, put("pillow 3", "sink 2", False)], times=2)
    absent = [put("pillow 1", "sink 1", True, held=False)] * 2
    assert not never_together([*absent, *worked], times=2), "it was not at hand"
    assert not never_together([trial("lamp", "take lamp", True)] * 2, times=2), "no pair"
