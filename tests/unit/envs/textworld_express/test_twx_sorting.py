import pytest

from dreamgym.envs.textworld_express.games import GENERATION
from dreamgym.envs.textworld_express.java import Server
from dreamgym.types import Split

PLAYERS = 8


def gold_in_lockstep(jvm, seeds):
    """Play the engine's own winning path at several places at once, one step each in turn."""
    servers = [Server(jvm) for _ in seeds]
    paths = []
    for server, seed in zip(servers, seeds, strict=True):
        server.load("sorting", "")
        server.generate(seed, "train", gold=True)
        paths.append(server.gold())
    answers = [[server.step(path[0])] for server, path in zip(servers, paths, strict=True)]
    for turn in range(1, max(map(len, paths))):
        for server, path, seen in zip(servers, paths, answers, strict=True):
            if turn < len(path):
                seen.append(server.step(path[turn]))
    return [seen[-1].success for seen in answers]


@pytest.mark.parametrize("other", [3, 103])
def test_the_engine_itself_shares_objects_between_sorting_games(jvm, other):
    """The bug that `sorting.py` is there for; if this fails, the engine was repaired."""
    assert gold_in_lockstep(jvm, [3, other]) == [False, True]


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_players_of_one_task_do_not_meet(engine_of, game):
    engine = engine_of(f"twx/{game}?test=20")
    task = engine.tasks(Split.TEST)[1]
    games = [engine.open(task) for _ in range(PLAYERS)]
    openings = {game.reset(seed) for seed, game in enumerate(games)}
    assert len(openings) == 1
    plan = games[0].expert()
    for turn, action in enumerate(plan, start=1):
        results = {game.step(action) for game in games}
        assert len(results) == 1, f"the players part at step {turn}"
    assert results.pop().success
    for game in games:
        game.close()


def test_sorting_games_of_one_problem_do_not_meet(engine_of):
    """Seeds that differ by the number of problems get the same objects from the engine."""
    engine = engine_of("twx/sorting")
    tasks = engine.tasks(Split.TRAIN)
    games = [engine.open(tasks[index]) for index in (3, 103, 203, 3)]
    for game in games:
        game.reset(0)
    plans = [list(game.expert()) for game in games]
    won = set()
    while any(plans):
        for index, (game, plan) in enumerate(zip(games, plans, strict=True)):
            if plan and game.step(plan.pop(0)).success:
                won.add(index)
    assert won == {0, 1, 2, 3}
