"""ALFWorld's handcoded expert: it wins without knowing where things are, and leaves no trace."""

import random

import pytest

from dreamgym.types import Split

pytestmark = pytest.mark.alfworld

SPEC = "alfworld/generated?expert=handcoded"


def test_it_wins_most_games_of_every_type(engine_of):
    engine = engine_of(SPEC)
    wins = []
    for task in engine.tasks(Split.TEST)[:18]:
        game = engine.open(task)
        game.reset(0)
        results = [game.step(command) for command in game.expert()]
        wins.append(bool(results) and results[-1].success)
        game.close()
    assert sum(wins) >= 16


def test_asking_changes_neither_the_game_nor_the_worlds_chance(play):
    game, opening = play(SPEC, index=2)
    state = random.getstate()
    plan = game.expert()
    assert plan == game.expert()
    assert random.getstate() == state
    for number, command in enumerate(plan):
        result = game.step(command)
        if number == 3:
            assert result.observation.text != opening.observation.text
            assert game.expert() == plan[4:]
    assert result.success


def test_it_goes_on_from_where_others_have_left_the_game(play):
    game, opening = play(SPEC, index=0)
    rng = random.Random(5)
    observation = opening.observation
    for _ in range(4):
        observation = game.step(rng.choice(observation.admissible)).observation
    results = [game.step(command) for command in game.expert()]
    assert results[-1].success


def test_it_says_nothing_when_too_few_steps_are_left(play):
    game, _ = play(SPEC + "&maxSteps=2")
    assert game.expert() == ()


def test_it_and_the_planner_differ(play):
    handcoded, _ = play(SPEC, index=3)
    planner, _ = play("alfworld/generated", index=3)
    assert len(handcoded.expert()) > len(planner.expert()) > 0
