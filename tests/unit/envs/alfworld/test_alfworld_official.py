"""Folders of official games: what is found, what is left out, what is said without any."""

import json

import pytest
from upstream_games import game_data, start_upstream

from dreamgym.envs.alfworld.official import OfficialGames, find_folder
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Split, Task

pytestmark = pytest.mark.alfworld

GAMES = {
    "train/pick_and_place_simple-Mug-None-Desk-1/trial_1": True,
    "train/pick_and_place_simple-Mug-None-Desk-1/trial_2": False,
    "train/look_at_obj_in_light-CD-None-DeskLamp-2/trial_1": True,
    "valid_seen/pick_and_place_simple-Mug-None-Desk-1/trial_9": True,
}


@pytest.fixture
def folder(upstream, tmp_path):
    """Generated games in the layout of the official ones."""
    data = list(game_data(upstream, len(GAMES)))
    for (key, solvable), game in zip(GAMES.items(), data, strict=True):
        path = tmp_path / "json_2.1.1" / key / "game.tw-pddl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(game | {"solvable": solvable, "walkthrough": ["look"]}))
    return tmp_path / "json_2.1.1"


def test_splits_come_from_folders_and_unsolvable_games_are_counted(folder):
    games = OfficialGames("spec", folder)
    keys = {split: {task.key for task in games.tasks(split)} for split in Split}
    assert keys == {
        Split.TRAIN: {key for key, good in GAMES.items() if good and key.startswith("train/")},
        Split.DEV: {key for key in GAMES if key.startswith("valid_seen/")},
        Split.TEST: set(),
    }
    assert games.unsolvable == {Split.TRAIN: 1, Split.DEV: 0, Split.TEST: 0}
    (task,) = games.tasks(Split.DEV)
    assert task.id == f"alfworld/official#{task.key}"
    assert games.read(task).walkthrough == ("look",)


def test_whether_a_game_is_solvable_is_found_wherever_it_stands(folder):
    path = next(folder.glob("valid_seen/*/*/game.tw-pddl"))
    game = json.loads(path.read_text())
    path.write_text(json.dumps({"solvable": True} | game))
    assert len(OfficialGames("spec", folder).tasks(Split.DEV)) == 1
    path.write_text(json.dumps({key: game[key] for key in game if key != "solvable"}))
    assert OfficialGames("spec", folder).tasks(Split.DEV) == ()


def test_ids_do_not_depend_on_where_the_folder_lies(folder, tmp_path):
    moved = tmp_path / "elsewhere"
    ids = [task.id for task in OfficialGames("spec", folder).tasks(Split.TRAIN)]
    folder.rename(moved)
    assert [task.id for task in OfficialGames("spec", moved).tasks(Split.TRAIN)] == ids


def test_a_folder_without_games_says_what_is_expected(tmp_path, engine_of):
    for place, found in (("nowhere", "is not a folder"), ("", "holds no games")):
        with pytest.raises(ConfigError, match=found) as error:
            engine_of(f"alfworld/official?path={tmp_path / place}")
        assert "json_2.1.1/{train,valid_seen,valid_unseen}" in str(error.value)


def test_without_a_path_alfworlds_own_variable_counts(monkeypatch, tmp_path):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(ConfigError, match="set ALFWORLD_DATA"):
        find_folder("")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert find_folder("") == tmp_path / "json_2.1.1"


def test_a_file_that_is_no_game_breaks_its_episode_only(folder):
    next(folder.glob("valid_seen/*/*/game.tw-pddl")).write_text('{"solvable": true}')
    games = OfficialGames("spec", folder)
    (task,) = games.tasks(Split.DEV)
    with pytest.raises(EnvError, match="is not an ALFWorld game"):
        games.read(task)
    with pytest.raises(EnvError, match="is not an ALFWorld game"):
        games.read(Task("id", "spec", "train/gone", Split.TRAIN))


@pytest.mark.slow
def test_real_games_are_won_by_walkthrough_planner_and_handcoded_expert(official_games, engine_of):
    wins = {"walkthrough": 0, "planner": 0, "handcoded": 0}
    for expert in ("planner", "handcoded"):
        engine = engine_of(f"alfworld/official?path={official_games}&expert={expert}")
        tasks = engine.tasks(Split.TRAIN)
        assert len(tasks) == 6
        for task in tasks:
            game = engine.open(task)
            opening = game.reset(0)
            assert opening.task.goal
            wins["walkthrough" if expert == "planner" else expert] += win(game)
            if expert == "planner":
                first = game.reset(1).observation.admissible[0]
                game.step(first)  # Off the walkthrough: the planner has to find the way.
                wins["planner"] += win(game)
            game.close()
    assert wins["walkthrough"] == wins["planner"] == 6
    assert wins["handcoded"] >= 5


def win(game):
    results = [game.step(command) for command in game.expert()]
    return bool(results) and results[-1].success


@pytest.mark.slow
def test_a_real_game_says_what_upstream_says(official_games, engine_of):
    engine = engine_of(f"alfworld/official?path={official_games}&asides=yes")
    task = engine.tasks(Split.TRAIN)[0]
    env = start_upstream(json.loads((official_games / task.key / "game.tw-pddl").read_text()))
    state, game = env.reset(), engine.open(task)
    observation = game.reset(0).observation
    for number in range(40):
        assert observation.admissible == tuple(state.admissible_commands)
        command = state.admissible_commands[number * 7 % len(state.admissible_commands)]
        state, _, _ = env.step(command)
        observation = game.step(command).observation
        assert game._simulation.feedback == state.feedback
