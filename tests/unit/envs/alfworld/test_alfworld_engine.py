"""The family as others see it: real problems, won by the planner, told in abstract states."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dreamgym.envs.alfworld.game_text import TASK_TYPES
from dreamgym.envs.alfworld.mapper import MAPPER_DIGEST, MAPPER_VERSION
from dreamgym.envs.spec import parse_spec
from dreamgym.errors import ConfigError, EnvError
from dreamgym.protocols import Engine, Game
from dreamgym.types import Split

pytestmark = pytest.mark.alfworld

GOLDEN = Path(__file__).parents[3] / "golden" / "alfworld"


def transcript(game, opening, commands):
    lines = [f"goal: {opening.task.goal}", opening.observation.text]
    for command in commands:
        result = game.step(command)
        flags = [name for name in ("refused", "terminated", "truncated", "success")
                 if getattr(result, name)]  # fmt: skip
        lines += [f"> {command}", f"reward {result.reward:g} {' '.join(flags)}".rstrip(),
                  result.observation.text]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("index", range(6), ids=TASK_TYPES)
def test_golden_states(play, index):
    game, opening = play("alfworld/generated", index=index)
    assert TASK_TYPES[index] in opening.task.id
    asides = ["look", "inventory", "dance", "go to bed 99", "help"]
    text = transcript(game, opening, [*asides, *game.expert()])
    path = GOLDEN / f"{TASK_TYPES[index]}.v{MAPPER_VERSION}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "the mapper changed: raise MAPPER_VERSION, UPDATE_GOLDEN=1"


def test_the_planner_wins_twenty_of_twenty_held_out_problems(engine_of):
    engine = engine_of("alfworld/generated")
    tasks = engine.tasks(Split.TEST)[:20]
    assert {task.key.rpartition("-")[0] for task in tasks} == set(TASK_TYPES)
    wins = 0
    for task in tasks:
        game = engine.open(task)
        game.reset(0)
        results = [game.step(command) for command in game.expert()]
        assert not any(result.refused for result in results)
        assert [result.reward for result in results] == [0.0] * (len(results) - 1) + [1.0]
        wins += results[-1].success
        game.close()
    assert wins == 20


@pytest.mark.slow
@pytest.mark.parametrize("size", ["medium", "large"])
def test_larger_rooms_are_won_too(engine_of, size):
    engine = engine_of(f"alfworld/generated?size={size}&holdout=objects")
    for task in engine.tasks(Split.TEST)[:6]:
        game = engine.open(task)
        game.reset(0)
        assert [game.step(command) for command in game.expert()][-1].success
        game.close()


def test_what_the_engine_does_not_do_is_refused_and_changes_nothing(play):
    game, opening = play()
    for action in ("dance", "", "go to bed 99", "take moon from sky", "GO TO", "look\nlook"):
        result = game.step(action)
        assert result.refused
        assert result.observation.admissible == opening.observation.admissible
        state = result.observation.text.removesuffix("\n> nothing happens")
        assert state == opening.observation.text


def test_case_and_spaces_do_not_matter(play):
    game, opening = play()
    command = opening.observation.admissible[0]
    plain = game.step(command)
    game.reset(0)
    assert game.step(f"  {command.upper().replace(' ', '  ')} ") == plain
    assert not plain.refused


def test_asides_are_answered_and_listed_only_on_request(play):
    game, opening = play()
    asides = {"help", "inventory", "look"}
    assert asides.isdisjoint(opening.observation.admissible)
    assert not any(game.step(aside).refused for aside in sorted(asides))
    _, opening = play("alfworld/generated?asides=yes")
    assert asides <= set(opening.observation.admissible)
    assert list(opening.observation.admissible) == sorted(opening.observation.admissible)


def test_a_plan_survives_refusals_and_asides_and_is_found_again_after_a_detour(play):
    game, opening = play()
    plan = game.expert()
    game.step("look")
    game.step("dance")
    assert game.expert() == plan
    game.step(plan[0])
    assert game.expert() == plan[1:]
    away = next(c for c in opening.observation.admissible if c not in plan and "go to" in c)
    game.step(away)
    assert game.expert() == plan
    assert [game.step(command) for command in game.expert()][-1].success
    assert game.expert() == ()


def test_the_step_limit_truncates_and_an_episode_that_is_over_is_over(play):
    game, _ = play("alfworld/generated?maxSteps=3")
    results = [game.step("dance") for _ in range(3)]
    assert [result.truncated for result in results] == [False, False, True]
    assert not results[-1].terminated
    with pytest.raises(EnvError, match="is over"):
        game.step("look")
    assert game.expert() == ()
    again = game.reset(1)
    assert again.observation.text.startswith("at the middle of the room")
    assert not game.step("look").refused


def test_a_game_is_reset_before_it_is_played(engine_of):
    engine = engine_of("alfworld/generated")
    game = engine.open(engine.tasks(Split.DEV)[0])
    with pytest.raises(EnvError, match="has not been reset"):
        game.step("look")
    game.close()


def test_an_opening_names_its_goal_and_its_entities(engine_of):
    engine = engine_of("alfworld/generated")
    task = engine.tasks(Split.TEST)[0]
    game = engine.open(task)
    opening = game.reset(0)
    assert opening.task == task
    places = opening.observation.text.split("places: ")[1].split(", ")
    kinds = {place.rpartition(" ")[0] for place in places}
    named = engine.entities(opening)
    assert kinds <= named
    assert {word for word in task.goal.split() if word in named} - kinds
    assert not named & {"put", "a", "some", "in", "the"}


def test_engine_and_game_have_the_shape_of_their_protocols(engine_of):
    engine = engine_of("alfworld/generated")
    assert isinstance(engine, Engine)
    assert isinstance(engine.open(engine.tasks(Split.DEV)[0]), Game)
    assert engine.version.startswith("alfworld-")
    assert engine.mapper == MAPPER_DIGEST


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("alfworld/generatde", "Did you mean 'generated'"),
        ("alfworld/generated?tpye=all", "Did you mean 'type'"),
        ("alfworld/generated?type=pick_two_obj", "Did you mean 'pick_two_obj_and_place'"),
        ("alfworld/generated?size=tiny", "Known: large, medium, small"),
        ("alfworld/generated?receptacles=2", "receptacles is at least 4"),
        ("alfworld/generated?objects=-1", "objects is at least 2"),
        ("alfworld/generated?expert=oracle", "Known: handcoded, planner"),
        ("alfworld/generated?holdout=rooms", "Known: objects, starts"),
        ("alfworld/generated?maxSteps=0", "maxSteps is at least 1"),
    ],
)
def test_wrong_settings_say_what_is_right(engine_of, spec, message):
    with pytest.raises(ConfigError, match=message):
        engine_of(spec)


def test_sizes_can_be_set_one_by_one(engine_of):
    engine = engine_of("alfworld/generated?receptacles=9&objects=3")
    task = engine.tasks(Split.DEV)[0]
    assert "#9x3/" in task.id
    opening = engine.open(task).reset(0)
    assert len(opening.observation.text.split("places: ")[1].split(", ")) == 9


EPISODES = """
import json, os, sys, tempfile
from dreamgym.envs.registry import make_engine
from dreamgym.types import Split
argv, folder = list(sys.argv), set(os.listdir(tempfile.gettempdir()))
said = []
for expert in ("planner", "handcoded"):
    engine = make_engine(f"alfworld/generated?expert={expert}")
    for task in engine.tasks(Split.DEV)[:4]:
        game = engine.open(task)
        opening = game.reset(0)
        said.append([task.id, opening.observation.text, opening.observation.admissible])
        for command in game.expert():
            result = game.step(command)
            said.append([command, result.observation.text, result.observation.admissible])
        game.close()
    engine.close()
assert sys.argv == argv and "ALFWORLD_DATA" not in os.environ
print(json.dumps(said), file=sys.stderr)
"""


@pytest.mark.slow
def test_two_processes_agree_and_say_nothing_on_standard_output(upstream, tmp_path):
    told = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        keep = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
        places = {"HOME": str(tmp_path / seed), "TMPDIR": str(tmp_path / seed)}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", EPISODES, "an argument"],
            env=keep | places | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert not list((tmp_path / seed).iterdir()), "files were left behind"
        told.append(json.loads(done.stderr))
    assert told[0] == told[1]


def test_a_missing_package_is_named_with_its_fix(monkeypatch, alfworld_cache):
    from dreamgym.envs.alfworld.engine import make_engine
    from dreamgym.errors import MissingDependency

    monkeypatch.setitem(sys.modules, "alfworld", None)
    for name in [name for name in sys.modules if name.startswith("alfworld.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDependency, match=r"pip install .*\[alfworld\]'"):
        make_engine(parse_spec("alfworld/generated"))
