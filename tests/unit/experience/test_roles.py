"""Where a thing stands in a state."""

import pytest

from dreamgym.experience.roles import ABSENT, headings, never_worked, role, situation

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


def test_one_success_outweighs_any_number_of_refusals():
    tried = [("lamp", "take lamp", True)] * 9
    assert never_worked(tried, LAYOUT, times=9)
    assert not never_worked(tried, LAYOUT, times=10)
    assert not never_worked([*tried, ("vase", "take vase", False)], LAYOUT, times=9)
