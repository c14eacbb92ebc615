import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.agents.near_miss import near_miss, objects_of, split_action


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("look", ("look",)),
        ("take red apple", ("take", "red apple")),
        ("put coin in box", ("put", "coin", "in", "box")),
        ("move to east", ("move", "", "to", "east")),
        ("cook banana in", ("cook", "banana", "in", "")),
        ("", ()),
    ],
)
def test_actions_are_cut_at_prepositions(action, parts):
    assert split_action(action) == parts
    assert " ".join(part for part in split_action(action) if part) == action


def test_objects_are_what_is_acted_on():
    found = objects_of(["put coin in box", "take coin", "look", "move north"])
    assert found == ("box", "coin", "north")


WORDS = st.sampled_from(["take", "put", "open", "coin", "box", "in", "north", "move", "door"])
ACTIONS = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), max_size=8)


@given(st.integers(0, 10**6), ACTIONS, ACTIONS, ACTIONS)
def test_a_near_miss_is_never_admissible(seed, admissible, known, plan):
    miss = near_miss(random.Random(seed), admissible=admissible, known=known, plan=plan)
    assert miss is None or (miss.strip() and miss not in admissible)


def test_misses_are_near_and_of_many_kinds():
    admissible = ["look", "take coin", "open box", "move north", "move south"]
    plan = ["take coin", "move north", "put coin in box"]
    misses = {
        near_miss(random.Random(seed), admissible=admissible, known=[], plan=plan)
        for seed in range(400)
    }
    assert "put coin in box" in misses, "a step that is not due yet"
    assert "take box" in misses, "the right verb with the wrong object"
    assert {"move east", "move west"} <= misses, "an exit that is not there"
    assert "take" in misses, "a torn command"
