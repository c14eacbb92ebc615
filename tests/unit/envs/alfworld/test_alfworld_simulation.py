"""The simulation says what upstream says, word for word, and can go back to what it saved."""

import random

import pytest
from upstream_games import game_data, start_upstream

from dreamgym.envs.alfworld.game_text import make_game_text
from dreamgym.envs.alfworld.house import _is_steady
from dreamgym.envs.alfworld.simulation import NOTHING_HAPPENS

pytestmark = pytest.mark.alfworld


def simulate(workshop, data):
    parts = (data["pddl_domain"], data["grammar"], data["pddl_problem"])
    return workshop.simulate(str(hash(parts)), lambda: make_game_text(*parts))


@pytest.mark.slow
@pytest.mark.parametrize("index", range(6))
def test_every_byte_is_upstreams(upstream, workshop, index):
    data = list(game_data(upstream, 6))[index]
    env = start_upstream(data)
    state, simulation = env.reset(), simulate(workshop, data)
    assert (simulation.feedback, simulation.commands) == (
        state.feedback, state.admissible_commands
    )  # fmt: skip
    rng = random.Random(index)
    for _ in range(60):
        known = state.admissible_commands
        command = rng.choice([*known, *known, "go to nowhere 1", " look ", "open fridge 1", ""])
        state, _, _ = env.step(command)
        accepted = simulation.step(command)
        assert accepted is (state.feedback != NOTHING_HAPPENS)
        assert simulation.feedback == state.feedback
        assert simulation.commands == state.admissible_commands
        assert simulation.won is state.won
    workshop.take_back(simulation)


def test_saved_presents_can_be_returned_to_in_any_order(upstream, workshop):
    simulation = simulate(workshop, next(game_data(upstream, 1)))
    rng, path = random.Random(1), []
    for _ in range(12):
        path.append((simulation.save(), simulation.view(), simulation.commands))
        simulation.step(rng.choice(simulation.commands))
    for saved, view, commands in rng.sample(path, len(path)):
        simulation.restore(saved)
        assert (simulation.view(), simulation.commands) == (view, commands)
        simulation.step(rng.choice(simulation.commands))
    simulation.rewind()
    assert (simulation.view(), simulation.commands) == path[0][1:]
    simulation.reset()
    assert (simulation.view(), simulation.commands) == path[0][1:]


def test_two_games_of_one_house_do_not_meet(upstream, workshop):
    data = next(game_data(upstream, 1))
    one, two = simulate(workshop, data), simulate(workshop, data)
    before = two.view()
    one.step(next(command for command in one.commands if command.startswith("go to")))
    assert one.view() != before
    assert two.view() == before


def test_commands_whose_words_could_change_are_worded_every_time(upstream, workshop):
    house = simulate(workshop, next(game_data(upstream, 1))).house
    assert house.steady
    task = workshop._translator.translate(house.text.domain, house.text.problem).task
    words = house.logic.actions["openobject"].template
    try:
        house.logic.actions["openobject"].template = "open [{r.name | opened(r:receptacle)}]"
        assert not _is_steady(house.logic, task)
    finally:
        house.logic.actions["openobject"].template = words
