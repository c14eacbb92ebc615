"""Dreams as Gymnasium environments."""

import math
import subprocess
import sys
import threading
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from coin_corridor import Engine
from dreamgym.config import DreamConfig
from dreamgym.dreams import card_for, dream_over
from dreamgym.errors import ConfigError, EnvError, LLMDown, LLMError
from dreamgym.experience import DreamWorld, ExperienceModel, Grounding
from dreamgym.experience.card import load_card
from dreamgym.gym import ID, Chair, OpenDream
from dreamgym.llm import ChaosServer, HttpLLM, ScriptedLLM
from dreamgym.loop_thread import LoopThread
from dreamgym.types import Split
from played_corridors import ENV

KEYS = {"task_id", "goal", "success", "refused", "origin", "reasoning", "references"}


@pytest.fixture(scope="module")
def opened(small_dream):
    dream = OpenDream(small_dream / "dream")
    yield dream
    dream.close()


def test_gymnasium_finds_it_without_an_import_of_ours(small_dream):
    code = (
        "import gymnasium, sys\n"
        "assert 'dreamgym' not in sys.modules\n"
        f"env = gymnasium.make('dreamgym.gym:{ID}', dream='dream')\n"
        "print(env.reset(seed=0)[1]['goal'])\n"
        f"print({ID!r} in gymnasium.registry)\n"
        "env.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=small_dream, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[:2] == ["take the coin", "True"], done.stderr


@pytest.mark.slow
def test_it_passes_gymnasiums_own_check(opened):
    env = gymnasium.make(ID, dream=opened, render_mode="ansi")
    check_env(env.unwrapped)


def test_an_episode(opened):
    env = gymnasium.make(ID, dream=opened)
    state, info = env.reset(seed=3)
    again, same = gymnasium.make(ID, dream=opened).reset(seed=3)
    assert (state, info) == (again, same)
    after, reward, terminated, truncated, info = env.step("take moon")
    assert after == f"{state}\n> you cannot do that"
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert set(info) == KEYS
    assert info["refused"] and info["origin"] == "grounding"
    assert "moon" in info["reasoning"]


def test_a_task_is_named_or_drawn_from_its_split(opened):
    wanted = f"{ENV}#7"
    env = gymnasium.make(ID, dream=opened, task=wanted)
    assert {env.reset(seed=n)[1]["task_id"] for n in range(3)} == {wanted}
    every = gymnasium.make(ID, dream=opened)
    assert every.reset(options={"task": wanted})[1]["task_id"] == wanted
    drawn = {every.reset()[1]["task_id"] for _ in range(20)}
    assert len(drawn) > 5
    with pytest.raises(ConfigError, match="no task 'nix'"):
        every.reset(options={"task": "nix"})
    with pytest.raises(ConfigError, match=r"unknown option \['tusk'\]"):
        every.reset(options={"tusk": wanted})


def test_wrong_arguments_say_what_is_right(opened, small_dream):
    for arguments, why in (
        ({"split": "trian"}, "Did you mean 'train'"),
        ({"split": "dev"}, "no task of the dev split"),
        ({"on_failure": "ignore"}, "Known: raise, truncate"),
        ({"settings": {"grounding": False}}, "belong to the OpenDream"),
    ):
        with pytest.raises(ConfigError, match=why):
            gymnasium.make(ID, dream=opened, **arguments)
    with pytest.raises(ConfigError, match="Did you mean 'ledger'"):
        OpenDream(small_dream / "dream", settings={"leger": False})


def test_a_dream_over_any_model_can_be_played(small_dream):
    """Here a server of the test's own answers; every other model is asked the same way."""
    reply = (
        "<think>nothing changes</think><edit></edit>\n"
        "Refused: False\nDone: False\nSuccess: False\nReward: 0"
    )
    config = DreamConfig(grounding=False)
    store = Path(load_card(small_dream / "dream").store)
    with ChaosServer(lambda prompt: reply) as server:
        llm = HttpLLM(server.base_url, "mine")
        dream = OpenDream(dream_over(llm, card_for(store, ENV, config), config=config))
        envs = gymnasium.make_vec(ID, num_envs=2, dream=dream)
        before, _ = envs.reset(seed=0)
        after, rewards, *_, infos = envs.step(["wave", "sing"])
        dream.close()
    assert after == before and not rewards.any()
    assert list(infos["origin"]) == ["model", "model"]
    assert server.counts["requests"] == 2


def test_rendering_shows_goal_and_state(opened):
    env = gymnasium.make(ID, dream=opened, render_mode="ansi")
    state, info = env.reset(seed=0)
    assert env.render() == f"Goal: {info['goal']}\n{state}"


def test_many_episodes_together_answer_as_each_alone(opened):
    count = 4
    envs = gymnasium.make_vec(ID, num_envs=count, dream=opened)
    states, infos = envs.reset(seed=5)
    lone = [gymnasium.make(ID, dream=opened) for _ in range(count)]
    begun = [env.reset(seed=5 + n) for n, env in enumerate(lone)]
    assert states == tuple(state for state, _ in begun)
    assert list(infos["task_id"]) == [info["task_id"] for _, info in begun]
    for action in ("take moon", "move east"):
        states, rewards, terminated, truncated, infos = envs.step([action] * count)
        alone = [env.step(action) for env in lone]
        assert states == tuple(one[0] for one in alone)
        assert list(rewards) == [one[1] for one in alone]
        assert list(infos["origin"]) == [one[4]["origin"] for one in alone]
        assert not terminated.any() and not truncated.any()
    assert envs.observation_space.contains(states)


def test_an_ended_place_begins_anew_with_the_next_step(opened):
    envs = gymnasium.make_vec(ID, num_envs=2, dream=opened, max_episode_steps=2)
    envs.reset(seed=0)
    assert not envs.step(["take moon"] * 2)[3].any()
    assert envs.step(["take moon"] * 2)[3].all(), "the limit cuts off"
    states, rewards, terminated, truncated, infos = envs.step(["ignored"] * 2)
    assert not any("> " in state for state in states), "these are openings"
    assert not terminated.any() and not truncated.any() and not rewards.any()
    assert not envs.step(["take moon"] * 2)[3].any(), "steps are counted anew"
    assert "origin" not in infos


def test_what_is_opened_is_closed_and_what_is_shared_is_not(opened, small_dream):
    def loops():
        return sum(thread.name == "dreamgym-loop" for thread in threading.enumerate())

    before = loops()
    env = gymnasium.make(ID, dream=small_dream / "dream")
    env.reset(seed=0)
    assert loops() == before + 1
    env.close()
    env.close()
    assert loops() == before
    shared = gymnasium.make(ID, dream=opened)
    shared.close()
    assert shared.reset(seed=0), "the dream is still open"


class Scripted:
    """As much of an `OpenDream` as a chair needs, over a model that says what it is told."""

    def __init__(self, *script):
        model = ExperienceModel(ScriptedLLM(list(script)), retries=0)
        self.world = DreamWorld(model, openings=self.opening, grounding=Grounding())

    async def opening(self, task):
        return Engine(ENV).open(task).reset(0)

    async def open(self, task):
        return await self.world.open(task)


def seated(*script, on_failure):
    tasks = Engine(ENV).tasks(Split.TRAIN)[:1]
    return Chair(Scripted(*script), tasks, on_failure=on_failure), tasks[0]


def test_a_failure_is_raised_and_never_a_zero():
    chair, task = seated(LLMError("busy"), on_failure="raise")
    with LoopThread() as loop:
        loop.run(chair.reset(task))
        with pytest.raises(EnvError, match="busy"):
            loop.run(chair.step("move east"))
        with pytest.raises(EnvError, match="reset"):
            loop.run(chair.step("move east"))


def test_a_failure_may_truncate_with_a_reward_that_nobody_can_use():
    chair, task = seated(LLMError("busy"), on_failure="truncate")
    with LoopThread() as loop:
        state, _ = loop.run(chair.reset(task))
        after, reward, terminated, truncated, info = loop.run(chair.step("move east"))
        assert (after, terminated, truncated) == (state, False, True)
        assert math.isnan(reward)
        assert "busy" in info["error"]
        assert info["task_id"] == task.id
        with pytest.raises(EnvError, match="reset"):
            loop.run(chair.step("move east"))


def test_a_model_that_is_gone_stops_everything():
    chair, task = seated(LLMDown("away"), on_failure="truncate")
    with LoopThread() as loop:
        loop.run(chair.reset(task))
        with pytest.raises(LLMDown, match="away"):
            loop.run(chair.step("move east"))


def test_not_knowing_ends_the_episode_without_reward(small_dream):
    env = gymnasium.make(ID, dream=small_dream / "dream", settings={"min_confidence": 1.0})
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("move east")
    env.close()
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["origin"] == "unknown"
    assert np.isfinite(reward)
