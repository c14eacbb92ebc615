import json
import random
import subprocess
import sys
from dataclasses import replace

import pytest

from dreamgym.envs.registry import make_engine
from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld_express.engine import TwxEngine
from dreamgym.envs.textworld_express.games import GENERATION
from dreamgym.errors import ConfigError, EnvCrash, EnvError
from dreamgym.protocols import Engine, Game
from dreamgym.types import Source, Split, digest

DIGESTS = """
import json, random, sys
sys.path.insert(0, {folder!r})
from dreamgym.envs.textworld_express.java import Jvm
from test_twx_engine import transcripts
print(json.dumps(transcripts(Jvm())))
"""


def transcripts(jvm):
    """Digest a random walk through two tasks of every game."""
    found = {}
    for name in sorted(GENERATION):
        engine = TwxEngine(parse_spec(f"twx/{name}?holdout=seed&test=9"), jvm=jvm)
        for task in engine.tasks(Split.TEST)[3:5]:
            found[task.id] = digest(walk(engine.open(task), seed=1))
    return found


def walk(game, *, seed, steps=25):
    """Return all that a random walk shows."""
    opening = game.reset(seed)
    choose = random.Random(5)
    admissible, lines = opening.observation.admissible, [str(opening)]
    for _ in range(steps):
        result = game.step(choose.choice(admissible))
        lines.append(str(result))
        admissible = result.observation.admissible
        if result.terminated or result.truncated:
            break
    return "\n".join(lines)


def test_it_is_an_engine(twx):
    engine = make_engine("twx/coin?test=20")
    assert isinstance(engine, Engine)
    assert isinstance(engine.open(engine.tasks(Split.TEST)[0]), Game)
    assert engine.version.startswith("textworld-express 1.")
    assert len(engine.mapper) == 16
    engine.close()
    with pytest.raises(EnvCrash):
        engine.open(engine.tasks(Split.TEST)[0]).reset(0)


def test_engines_may_share_a_java(engine_of, jvm):
    one, other = engine_of("twx/coin?test=20"), engine_of("twx/sorting?test=20")
    assert one.pid == other.pid == jvm.pid
    other.close()
    assert one.open(one.tasks(Split.TEST)[0]).reset(0)


def test_tasks_say_who_they_are(engine_of):
    engine = engine_of("twx/coin?numLocations=5&test=20")
    task = engine.tasks(Split.TEST)[0]
    assert task.id == f"twx/coin?numLocations=5#{task.key}"
    assert (task.env, task.split, task.source) == (
        "twx/coin?numLocations=5&test=20",
        Split.TEST,
        Source.REAL,
    )
    assert engine.tasks(Split.TEST) is engine.tasks(Split.TEST)


def test_the_opening_has_the_goal(play):
    _, opening = play("twx/coin?test=20")
    assert opening.task.goal == "find the coin and take it"
    assert opening.observation.text.startswith("kitchen\n")
    assert list(opening.observation.admissible) == sorted(set(opening.observation.admissible))


@pytest.mark.parametrize("key", ["", "train", "train-", "train-x", "valid-3", "train--3"])
def test_a_key_of_another_world_is_refused(engine_of, key):
    engine = engine_of("twx/coin?test=20")
    task = replace(engine.tasks(Split.TEST)[0], key=key)
    with pytest.raises(ConfigError, match="is no key of twx/coin"):
        engine.open(task)


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_a_reset_starts_the_same_episode_again(engine_of, game):
    engine = engine_of(f"twx/{game}?test=20")
    one = engine.open(engine.tasks(Split.TEST)[2])
    first = walk(one, seed=1)
    assert walk(one, seed=2) == first
    one.close()
    assert walk(one, seed=1) == first
    one.close()


@pytest.mark.slow
def test_two_processes_agree(jvm):
    folder = __file__.rpartition("/")[0]
    command = [sys.executable, "-c", DIGESTS.format(folder=folder)]
    other = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(other.stdout) == transcripts(jvm)


def test_rewards_are_the_engines_score_step_by_step(play):
    game, _ = play("twx/mapreader?test=20", 1)
    results = [game.step(action) for action in game.expert()]
    assert [result.reward for result in results if result.reward] == [0.5, 0.5]
    assert [result.success for result in results] == [False] * (len(results) - 1) + [True]
    assert results[-1].terminated


def test_a_wrong_end_is_no_success(play):
    game, _ = play("twx/arithmetic?test=20")
    for action in ("take math problem", "put math problem in box"):
        result = game.step(action)
    assert (result.terminated, result.success, result.truncated) == (True, False, False)


def test_the_step_limit_truncates(play):
    game, _ = play("twx/coin?maxSteps=3&test=20")
    results = [game.step("look around") for _ in range(3)]
    assert [result.truncated for result in results] == [False, False, True]
    assert not results[-1].terminated
    with pytest.raises(EnvError, match="reset it first"):
        game.step("look around")


def test_a_win_on_the_last_step_is_a_win(play):
    whole, _ = play("twx/peckingorder?test=20")
    plan = whole.expert()
    game, _ = play(f"twx/peckingorder?test=20&maxSteps={len(plan)}")
    result = [game.step(action) for action in plan][-1]
    assert (result.success, result.truncated) == (True, False)


def test_a_game_must_be_begun(engine_of):
    engine = engine_of("twx/coin?test=20")
    game = engine.open(engine.tasks(Split.TEST)[0])
    with pytest.raises(EnvError, match="reset it first"):
        game.step("look around")
    assert game.expert() == ()


@pytest.mark.parametrize("action", ["fly north", "take moon", "", "take", "TAKE COINS", "x" * 999])
def test_what_is_not_understood_is_refused(play, action):
    game, opening = play("twx/coin?test=20")
    result = game.step(action)
    assert result.refused
    assert result.observation.text == f"{opening.observation.text}\n> unknown action"
    assert result.observation.admissible == opening.observation.admissible


def test_a_closed_door_refuses(play):
    game, opening = play("twx/coin?numLocations=2&train=20", split=Split.TRAIN)
    way = opening.observation.text.rpartition("\n")[2].partition(":")[0]
    assert opening.observation.text.endswith("door")
    said = [
        ("close door to {}", "already closed", True),
        ("move {}", "the door is closed", True),
        ("open door to {}", "", False),
        ("open door to {}", "already open", True),
        ("move {}", "", False),
    ]
    for action, told, refused in said:
        result = game.step(action.format(way))
        assert result.refused is refused, action
        assert result.observation.text.partition("> ")[2] == told


def test_a_full_inventory_refuses(play):
    game, _ = play("twx/mapreader?limitInventorySize=1&maxDistractorItemsPerLocation=3&test=20", 4)
    seen = []
    for _ in range(60):
        takes = [action for action in game.raw.valid if action.startswith("take ")]
        moves = [action for action in game.raw.valid if action.startswith("move ")]
        result = game.step((takes or [moves[len(seen) % len(moves)]])[0])
        seen.append(result)
        if result.refused:
            break
    assert result.observation.text.endswith("> the inventory is full")


def spread(action):
    return "\t ".join(action.split())


@pytest.mark.parametrize("change", [str.upper, str.title, "  {}\t".format, spread])
def test_case_and_spaces_do_not_matter(play, change):
    game, _ = play("twx/twc?test=20", 1)
    results = [game.step(change(action)) for action in game.expert()]
    assert not any(result.refused for result in results)
    assert results[-1].success


def test_namesies_of_an_opening(play, engine_of):
    _, opening = play("twx/mapreader?test=20", 2)
    found = engine_of("twx/mapreader?test=20").entities(opening)
    assert {"box", "map", opening.observation.text.split("\n")[0]} <= found
    goal_rooms = opening.task.goal.split(" in the ")
    assert goal_rooms[-1] in found
