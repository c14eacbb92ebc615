"""Renaming: names are found by rule, changed consistently, and can be changed back."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.train.renaming import Names, Renamer, find_names, retold
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

ROOMS = ("attic", "cellar", "hall", "kitchen", "steam room", "study")
FOODS = ("black pepper", "oil", "olive oil", "pepper", "salt", "sugar")
EXITS = ("east", "north", "south", "west")


def episode(number, *, listed=True):
    """Return a short walk: take something in one room, go to the next, make the meal."""
    here, there = ROOMS[number % 6], ROOMS[(number + 1) % 6]
    food, way = FOODS[number % 6], EXITS[number % 4]
    pages = [
        f"{here}\nshelf: {food}; oven\n{way}: {there}",
        f"{here}\nshelf: empty; oven\n{way}: {there}\ncarrying: {food}",
        f"{there}\ncarrying: {food}\n> you come from the {here}",
        f"{there}\ncarrying: meal",
    ]
    actions = [f"take {food}", f"move {way}", "prepare meal"]
    look = ("look around", "prepare meal", f"take {food}", f"put {food} in shelf", f"move {way}")
    seen = [Observation(page, look if listed else None) for page in pages]
    task = Task(
        f"t{number}", "e", str(number), Split.TRAIN, goal=f"bring the {food} to the {there}"
    )
    steps = tuple(
        Step(Action(action), StepResult(now)) for action, now in zip(actions, seen[1:], strict=True)
    )
    done = replace(steps[-1], result=replace(steps[-1].result, terminated=True, success=True))
    return Trajectory(
        f"e{number}", task, seen[0], (*steps[:-1], done), StopReason.TERMINATED,
        Provenance(Source.REAL, "expert"),
    )  # fmt: skip


EPISODES = [episode(number) for number in range(24)]


def test_places_and_things_are_found_and_grammar_is_not():
    assert set(find_names(EPISODES, fewest=5).classes) == {ROOMS, FOODS}


def test_directions_are_names_too():
    assert set(find_names(EPISODES).classes) == {ROOMS, FOODS, EXITS}


def test_without_lists_recorded_actions_tell():
    found = find_names([episode(number, listed=False) for number in range(24)])
    assert set(found.classes) == {ROOMS, FOODS, EXITS}


def test_a_page_called_after_a_thing_is_renamed_with_the_thing():
    things = ["bed", "cart", "desk", "safe", "sofa"]
    seen = [
        replace(EPISODES[0], opening=Observation(f"at {thing} 1: cup", (f"go to {thing} 1",)),
                steps=()) for thing in things
    ]  # fmt: skip
    assert find_names(seen).classes == (tuple(things),)


def test_nothing_on_record_is_no_name():
    assert find_names([]).classes == ()
    assert Renamer({}).text("hall") == "hall"


@given(st.integers(0, 23), st.integers(0, 10_000))
def test_a_renaming_is_consistent_and_can_be_taken_back(number, seed):
    names = Names((ROOMS, FOODS, EXITS))
    renamed = names.draw(random.Random(seed))
    assert sorted(renamed) == sorted(renamed.values())
    assert all({old, new} <= set(group) for group in names.classes for old, new in
               renamed.items() if old in group)  # fmt: skip
    old = EPISODES[number]
    new = retold(old, names, random.Random(seed))
    here, there = ROOMS[number % 6], ROOMS[(number + 1) % 6]
    food = FOODS[number % 6]
    assert new.steps[0].action.text == f"take {renamed[food]}"
    assert new.opening.text.startswith(renamed[here] + "\n")
    assert new.task.goal == f"bring the {renamed[food]} to the {renamed[there]}"
    assert new.steps[2].action.text == "prepare meal"
    assert renamed[food] in new.steps[0].result.observation.text
    back = Renamer({now: before for before, now in renamed.items()}).trajectory(new)
    assert back == old


def test_inverse_undoes():
    renamer = Renamer({"hall": "attic", "attic": "study", "study": "hall"})
    text = "hall; attic-like; the study, hallway"
    assert renamer.text(text) == "attic; attic-like; the hall, hallway"
    assert renamer.inverse().text(renamer.text(text)) == text


def test_names_that_run_into_each_other_are_not_drawn():
    # After `olive`, the name `oil` would be taken for a part of another name.
    tricky = replace(EPISODES[0], opening=Observation("hall\nolive salt"))
    names = Names((("oil", "olive oil", "salt"),))
    drawn = {retold(tricky, names, random.Random(seed)).opening.text for seed in range(40)}
    assert drawn == {"hall\nolive salt", "hall\nolive olive oil"}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_tells_the_same(seed):
    names = find_names(EPISODES)
    first = retold(EPISODES[3], names, random.Random(seed))
    assert first == retold(EPISODES[3], names, random.Random(seed))
    assert first != EPISODES[3]
