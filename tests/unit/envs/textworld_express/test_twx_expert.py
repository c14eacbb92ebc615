import random

import pytest

from dreamgym.envs.textworld_express.games import GENERATION
from dreamgym.types import Split

SPECS = [f"twx/{game}?test=20" for game in sorted(GENERATION)]


def play_plan(game):
    results = [game.step(action) for action in game.expert()]
    return results[-1] if results else None


def test_the_expert_wins_a_hundred_held_out_episodes(engine_of):
    """At least 95 of 100 test-split episodes over the eight games; 13 of most, 9 of the last."""
    played = wins = 0
    for spec in SPECS:
        engine = engine_of(spec)
        for task in engine.tasks(Split.TEST)[: min(13, 100 - played)]:
            game = engine.open(task)
            game.reset(0)
            result = play_plan(game)
            played += 1
            wins += result is not None and result.success
            game.close()
    assert played == 100
    assert wins >= 95


@pytest.mark.parametrize(
    "spec",
    [
        "twx/cookingworld?numIngredients=5&test=4",
        "twx/cookingworld?numLocations=1&limitInventorySize=0&test=4",
        "twx/twc?includeDoors=1&limitInventorySize=1&test=4",
        "twx/coin?numDistractorItems=10&test=4",
        "twx/mapreader?includeDoors=1&limitInventorySize=1&test=4",
        "twx/mapreader?numLocations=48&maxDistanceApart=8&test=4",
        "twx/simonsays?memorization=1&test=4",
        "twx/simonsays?memorization=1&verbose=1&gameLength=9&test=4",
    ],
)
def test_the_expert_knows_the_variants(play, spec):
    for index in range(4):
        game, _ = play(spec, index)
        assert play_plan(game).success


@pytest.mark.parametrize("spec", SPECS)
def test_plans_are_the_same_every_time_and_have_no_idle_step(play, spec):
    game, _ = play(spec, 3)
    plan = game.expert()
    again, _ = play(spec, 3)
    assert again.expert() == plan
    assert not {"look around", "inventory", "task"} & set(plan)
    for action in plan:
        assert not game.step(action).refused


@pytest.mark.parametrize("game", ["cookingworld", "twc", "coin", "mapreader", "arithmetic"])
def test_a_walker_who_errs_is_brought_back(play, game):
    """Three of ten actions are random; where that cannot lose the game, the expert wins it."""
    won = lost = 0
    for index in range(6):
        one, opening = play(f"twx/{game}?test=20&maxSteps=200", index)
        choose = random.Random(index)
        admissible = opening.observation.admissible
        while True:
            plan = one.expert()
            action = plan[0] if plan and choose.random() > 0.3 else choose.choice(admissible)
            result = one.step(action)
            admissible = result.observation.admissible
            if result.terminated or result.truncated:
                break
        won += result.success
        lost += result.terminated and not result.success
    assert won + lost == 6
    assert won >= (6 if game in ("twc", "coin", "mapreader") else 2)


def test_what_is_handed_out_always_wins(play):
    """After any detour, a plan is either empty or wins: it has been played."""
    for index in range(4):
        game, opening = play("twx/cookingworld?test=20", index)
        choose = random.Random(index)
        admissible = opening.observation.admissible
        for _ in range(12):
            result = game.step(choose.choice(admissible))
            admissible = result.observation.admissible
            if result.terminated:
                break
        if not result.terminated and (plan := game.expert()):
            assert [game.step(action).success for action in plan] == [False] * (len(plan) - 1) + [
                True
            ]


def test_a_lost_game_has_no_plan(play):
    game, opening = play("twx/simonsays?test=20")
    (wanted,) = game.expert()[:1]
    wrong = next(action for action in opening.observation.admissible if action != wanted)
    result = game.step(wrong)
    assert (result.terminated, result.success) == (True, False)
    assert game.expert() == ()


def test_a_plan_that_does_not_fit_the_steps_left_is_none(play):
    game, _ = play("twx/sorting?test=20&maxSteps=6")
    whole, _ = play("twx/sorting?test=20")
    need = len(whole.expert())
    assert len(game.expert()) == (need if need <= 6 else 0)
    tight, _ = play(f"twx/sorting?test=20&maxSteps={need}")
    assert len(tight.expert()) == need
    tight.step("look around")
    assert tight.expert() == ()


def test_asking_does_not_disturb_the_game(play):
    asked, opening = play("twx/cookingworld?test=20")
    silent, _ = play("twx/cookingworld?test=20")
    choose = random.Random(3)
    admissible = opening.observation.admissible
    for _ in range(10):
        asked.expert()
        action = choose.choice(admissible)
        result = asked.step(action)
        assert silent.step(action) == result
        admissible = result.observation.admissible
        if result.terminated:
            break
