"""Gymnasium environments as engines: what is read from them, and which ones are refused."""

from __future__ import annotations

import gymnasium
import pytest

from dreamgym.envs.registry import make_engine
from dreamgym.errors import ConfigError, EnvError
from dreamgym.protocols import Engine, Game
from dreamgym.types import Opening, Split, Task

COUNTER = "gym/dreamgym-test/Counter-v0?import=text_gyms"


def begin(spec: str) -> tuple[Game, Opening]:
    engine = make_engine(spec)
    game = engine.open(engine.tasks(Split.TRAIN)[0])
    return game, game.reset(0)


def test_an_episode_is_read_from_observation_and_info() -> None:
    game, opening = begin(COUNTER)
    assert opening.task.goal.startswith("Count to ")
    assert opening.observation.text.startswith("The counter shows 0 of ")
    assert opening.observation.admissible == ("count",)
    refused = game.step("dance")
    assert (refused.refused, refused.reward, refused.success) == (True, 0.0, False)
    plan = game.expert()
    results = [game.step(action) for action in plan]
    assert results[0].observation.admissible == ("count", "stop")
    assert not any(result.refused for result in results)
    assert [result.terminated for result in results] == [False] * (len(plan) - 1) + [True]
    assert (results[-1].success, results[-1].reward) == (True, 1.0)
    game.close()


def test_a_task_is_a_seed_and_splits_share_none() -> None:
    engine = make_engine(f"{COUNTER}&train=50&dev=5&test=7")
    tasks = {split: engine.tasks(split) for split in Split}
    assert {split: len(found) for split, found in tasks.items()} == {
        Split.TRAIN: 50,
        Split.DEV: 5,
        Split.TEST: 7,
    }
    assert len({task.key for found in tasks.values() for task in found}) == 62
    first = [engine.open(task).reset(0).observation for task in tasks[Split.TRAIN]]
    again = [engine.open(task).reset(9).observation for task in tasks[Split.TRAIN]]
    assert first == again
    assert len(set(first)) == 3
    grown = make_engine(f"{COUNTER}&train=60&dev=5&test=7")
    assert [t.key for t in grown.tasks(Split.TRAIN)][:50] == [t.key for t in tasks[Split.TRAIN]]


def test_the_environment_gets_its_arguments_and_the_limit() -> None:
    engine = make_engine(f"{COUNTER}&make.size=1&max_steps=3")
    game = engine.open(engine.tasks(Split.TRAIN)[0])
    assert game.reset(0).observation.text == "The counter shows 0 of 2."
    results = [game.step("count") for _ in range(3)]
    assert [result.truncated for result in results] == [False, False, True]
    assert not results[-1].terminated


def test_entities_and_identity() -> None:
    engine = make_engine(COUNTER)
    opening = engine.open(engine.tasks(Split.TRAIN)[0]).reset(0)
    assert engine.entities(opening) == {"0", opening.task.goal[-2]}
    assert engine.version == f"dreamgym-test/Counter-v0 (gymnasium {gymnasium.__version__})"
    assert isinstance(engine, Engine)
    engine.close()


def test_success_is_never_guessed() -> None:
    game, opening = begin(f"{COUNTER}&make.bare=True")
    assert (opening.task.goal, opening.observation.admissible) == ("", None)
    game.step("count")
    with pytest.raises(EnvError, match=r"without info\['success'\].* add success=reward"):
        game.step("stop")


def test_success_can_be_read_off_the_last_reward() -> None:
    game, _ = begin(f"{COUNTER}&make.bare=True&success=reward")
    results = [game.step(action) for action in game.expert()]
    assert results[-1].success
    game.reset(0)
    assert not game.step("count").success
    lost = game.step("stop")
    assert (lost.terminated, lost.success) == (True, False)


def test_another_space_of_texts_will_do() -> None:
    game, _ = begin("gym/dreamgym-test/OwnSpace-v0?import=text_gyms")
    assert game.step("count").observation.text.startswith("The counter shows 1")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gym", "names no environment"),
        ("gym/FrozenLak-v1", "Did you mean FrozenLake-v1"),
        ("gym/nowhere/Env-v0", "?import=MODULE names the module that registers it"),
        ("gym/X-v0?import=no_such_module_here", "no module 'no_such_module_here'"),
        ("gym/FrozenLake-v1", "actions are Discrete(4) and must be texts; wrap"),
        ("gym/dreamgym-test/NumberActions-v0?import=text_gyms", "actions are Discrete(3)"),
        (f"{COUNTER}&max_step=3", "unknown parameter 'max_step'. Did you mean 'max_steps'?"),
        (f"{COUNTER}&success=score", "success is 'info' or 'reward', not 'score'"),
        (f"{COUNTER}&max_steps=-1", "max_steps=-1 is less than nothing"),
        (f"{COUNTER}&make.sizes=3", "check the make. parameters"),
    ],
)
def test_what_cannot_be_used_is_explained(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_engine(spec)
    assert message in str(caught.value)


def test_observations_that_are_no_texts_are_refused() -> None:
    class Numbers(gymnasium.ObservationWrapper):  # type: ignore[type-arg]
        def observation(self, observation: str) -> int:
            return len(observation)

    import text_gyms

    gymnasium.register("Numbers-v0", lambda: Numbers(text_gyms.Counter()))
    try:
        with pytest.raises(ConfigError, match=r"(?s)are Text\(.*such as \d+, and must be texts"):
            make_engine("gym/Numbers-v0")
    finally:
        del gymnasium.registry["Numbers-v0"]


def test_a_key_that_is_no_seed_is_refused() -> None:
    engine = make_engine(COUNTER)
    with pytest.raises(ConfigError, match="'first' is no seed"):
        engine.open(Task("x", COUNTER, "first", Split.TRAIN))
