"""Generated problems: the same by seed, never solved at the start, of the size asked for."""

import re

import pytest

from dreamgym.envs.alfworld.game_text import TASK_TYPES, read_aim
from dreamgym.envs.alfworld.generate import (
    SIZES,
    SMALLEST,
    Size,
    draw_sketch,
    possible_goals,
    write_problem,
)
from dreamgym.envs.alfworld.rooms import FURNITURE, HELD_OUT, LAMP, ROOMS, THINGS

pytestmark = pytest.mark.alfworld


def sketch_of(upstream, kind, seed, size, held_out=None):
    goals = possible_goals(upstream, kind, held_out=held_out)
    return draw_sketch(upstream, kind, seed, size=size, goals=goals)


def facts(problem, predicate):
    return re.findall(rf"\({predicate} (\w+) (\w+)\)", problem)


@pytest.mark.parametrize("kind", TASK_TYPES)
@pytest.mark.parametrize("size", [SMALLEST, *SIZES.values()], ids=str)
def test_a_problem_is_what_its_sketch_says(upstream, kind, size):
    for seed in range(25):
        sketch = sketch_of(upstream, kind, seed, size)
        problem = write_problem(upstream, sketch, size=size)
        assert problem == write_problem(upstream, sketch, size=size)
        aim = read_aim(problem)
        assert (aim.task_type, aim.thing, aim.place) == (
            kind, sketch.thing.lower(), sketch.place.lower()
        )  # fmt: skip
        kinds = dict(facts(problem, "receptacleType"))
        assert sorted(kinds.values()) == sorted(f"{name}Type" for name in sketch.receptacles)
        assert len(kinds) == size.receptacles
        wanted = 2 if kind == "pick_two_obj_and_place" else 1
        assert problem.count("(pickupable ") == max(size.objects, wanted)


@pytest.mark.parametrize("kind", TASK_TYPES)
def test_what_is_sought_is_there_and_not_where_it_belongs(upstream, kind):
    for seed in range(60):
        size = SIZES["small"]
        sketch = sketch_of(upstream, kind, seed, size)
        problem = write_problem(upstream, sketch, size=size)
        types, places = dict(facts(problem, "objectType")), dict(facts(problem, "receptacleType"))
        inside = dict(facts(problem, "inReceptacle"))
        sought = [thing for thing, name in types.items() if name == f"{sketch.thing}Type"]
        assert len(sought) >= (2 if kind == "pick_two_obj_and_place" else 1)
        assert all(places[inside[thing]] != f"{sketch.place}Type" for thing in sought)
        for thing, place in inside.items():
            if not thing.startswith(LAMP):
                holder = places[place].removesuffix("Type")
                assert types[thing].removesuffix("Type") in upstream.holds[holder]


def test_seeds_make_different_problems(upstream):
    size = Size(8, 8)
    made = {
        write_problem(upstream, sketch_of(upstream, TASK_TYPES[0], seed, size), size=size)
        for seed in range(50)
    }
    assert len(made) == 50


def test_held_out_objects_can_be_sought_or_left_out(upstream):
    for kind in TASK_TYPES:
        for held_out in (True, False):
            goals = possible_goals(upstream, kind, held_out=held_out)
            assert goals
            assert all((thing in HELD_OUT) == held_out for room in goals for thing in goals[room])
    size = SIZES["medium"]
    sketch = sketch_of(upstream, TASK_TYPES[0], 3, size, held_out=False)
    problem = write_problem(upstream, sketch, size=size, without=HELD_OUT)
    assert not any(f"{thing}Type" in problem for thing in HELD_OUT)


def test_the_tables_speak_of_things_that_alfworld_knows(upstream):
    known = set().union(*upstream.holds.values())
    for room in FURNITURE:
        assert set(FURNITURE[room]) <= set(upstream.holds)
        assert set(THINGS[room]) <= known
    assert set(ROOMS) == set(TASK_TYPES)
    assert {thing for room in THINGS for thing in THINGS[room]} >= HELD_OUT
