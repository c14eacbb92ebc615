"""Plans from the present: they win from the start, off the path, and with full hands."""

import random

import pytest
from upstream_games import game_data

from dreamgym.envs.alfworld.game_text import make_game_text
from dreamgym.envs.alfworld.planner import _without_actions, present_problem
from dreamgym.errors import EnvError

pytestmark = pytest.mark.alfworld


def open_game(workshop, upstream, index, size="small"):
    data = list(game_data(upstream, 6, size))[index]
    parts = (data["pddl_domain"], data["grammar"], data["pddl_problem"])
    return workshop.simulate(f"{size} {index}", lambda: make_game_text(*parts))


def follow(simulation, plan):
    return [simulation.step(command) for command in plan]


@pytest.mark.parametrize("index", range(6))
def test_a_plan_wins_after_any_wandering(upstream, workshop, index):
    simulation, rng = open_game(workshop, upstream, index, "medium"), random.Random(index)
    for _ in range(4):
        for _ in range(rng.randrange(8)):
            simulation.step(rng.choice(simulation.commands))
        before = simulation.view()
        plan = workshop.planner.plan(simulation)
        assert simulation.view() == before
        if not simulation.won:
            assert all(follow(simulation, plan))
        assert simulation.won
        assert workshop.planner.plan(simulation) == ()
        simulation.rewind()


def test_what_is_in_the_way_is_put_down_first(upstream, workshop):
    simulation = open_game(workshop, upstream, 0)
    sought = simulation.house.text.problem.split("(objectType ?o ")[1].split("Type)")[0].lower()
    for place in simulation.view().places:
        follow(simulation, [f"go to {place}", f"open {place}"])
        takes = [command for command in simulation.commands if command.startswith("take ")]
        other = [command for command in takes if f"take {sought}" not in command]
        if other:
            simulation.step(other[0])
            break
    (held,) = simulation.view().carried
    plan = workshop.planner.plan(simulation)
    assert any(command.startswith(f"move {held} to ") for command in plan)
    assert all(follow(simulation, plan))
    assert simulation.won


def test_the_cut_down_problem_costs_no_extra_steps(upstream, workshop):
    for index in range(6):
        simulation = open_game(workshop, upstream, index)
        plan = workshop.planner.plan(simulation)
        whole = workshop.planner.solve(simulation, present_problem(simulation, None))
        assert len(plan) == len(whole)


def test_a_house_whose_goal_cannot_be_reached_is_not_opened(upstream, workshop):
    data = next(game_data(upstream, 1))
    problem = data["pddl_problem"].replace("(pickupable ", "(isReceptacleObject ")
    parts = (data["pddl_domain"], data["grammar"], problem)
    for _ in range(2):  # Also when it has been tried before.
        with pytest.raises(EnvError, match="cannot be reached"):
            workshop.simulate("unsolvable", lambda: make_game_text(*parts))


def test_actions_are_cut_out_of_a_domain_whole():
    domain = """(define (domain d) ; (:action look
        (:action look :parameters (?a - agent) :effect (and (seen ?a)))
        (:action lookAgain :effect ()) )"""
    cut = _without_actions(domain, ["look", "absent"])
    assert " ".join(cut.split()) == "(define (domain d) (:action lookAgain :effect ()) )"
