"""What the record says about tasks: their places as one who has just begun finds them."""

from dataclasses import replace

from small_house import GOAL, OPENING, page, transition

from dreamgym.experience.task_memory import known_task, known_tasks, nearest
from dreamgym.experience.task_prompt import Example
from played_corridors import played


def walked(*actions):
    state, steps = OPENING, []
    for number, action in enumerate(actions):
        steps.append(transition(state, action, number=number))
        state = steps[-1].next_state
    return steps


def test_places_are_as_episodes_first_came_to_them():
    steps = walked("take cup", "move west", "move north", "take rake", "move south", "move north")
    known = known_task(GOAL, OPENING, steps)
    assert known.first_state == OPENING
    assert known.places == (page("garden"), page("hall")), "with the rake, and nothing carried"


def test_what_the_opening_says_is_carried_comes_along():
    opening = f"{OPENING}\ncarrying: map\n> welcome"
    known = known_task(GOAL, opening, walked("move west"))
    assert known.first_state == f"{OPENING}\ncarrying: map"
    assert known.places == (f"{page('hall')}\ncarrying: map",)


def test_a_task_of_one_place_has_no_other():
    assert known_task(GOAL, OPENING, walked("take cup")).places == ()
    assert known_task(GOAL, OPENING, ()).places == ()


def test_all_episodes_of_a_task_count():
    short, long = played(0, actions=("move west",)), played(0, name="again")
    one, other = known_tasks([short]), known_tasks([short, long])
    assert list(one) == list(other) == [short.task.id]
    assert len(other[short.task.id].places) > len(one[short.task.id].places)


def test_the_nearest_task_comes_last_and_equal_ones_do_not_count():
    coin = Example(GOAL, OPENING)
    others = {
        "same": Example(GOAL, OPENING, (page("hall"),)),
        "near": Example(GOAL, page("hall")),
        "far": Example("eat a pie", "cellar"),
    }
    found = nearest(coin, others, most=3, seed=0)
    assert found == (others["far"], others["near"])
    assert nearest(coin, others, most=1, seed=0) == (others["near"],)
    assert nearest(coin, {}, most=2, seed=0) == ()


def test_of_equally_near_tasks_the_seed_decides():
    alike = {str(n): Example(GOAL, f"room{n}") for n in range(20)}
    one = replace(alike["3"], goal="", first_state="")
    found = {nearest(one, alike, most=1, seed=seed) for seed in range(10)}
    assert len(found) > 1
    assert nearest(one, alike, most=1, seed=5) == nearest(one, alike, most=1, seed=5)
