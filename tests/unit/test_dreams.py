"""Opening dreams, and the stores that they stand on."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dreamgym.config import DreamConfig, ReplayConfig
from dreamgym.dreams import (
    card_for,
    dream_over,
    named_task,
    only_env,
    open_dream,
    store_path,
)
from dreamgym.errors import ConfigError, EnvError
from dreamgym.experience.prompt import Style
from dreamgym.llm import ScriptedLLM
from dreamgym.models.load import load_tokenizer
from dreamgym.models.tiny import make_tiny
from dreamgym.replay import open_store
from dreamgym.types import Split, Task
from played_corridors import ENV, played


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.sqlite"
    with open_store(path) as opened:
        opened.add([played(2), played(0), played(1, split=Split.DEV)])
    return path


def test_a_fitted_dream_opens_with_its_tasks(small_dream):
    dream = open_dream(small_dream / "dream")
    try:
        tasks = dream.tasks(Split.TRAIN)
        assert len(tasks) == 60
        assert [task.id for task in tasks] == sorted(task.id for task in tasks)
        assert tasks[0].goal == "take the coin", "goals are filled in"
        assert dream.tasks(Split.DEV) == ()
        assert dream.card.env == dream.world.spec.removeprefix("dream:") == ENV
        assert dream.card.style is Style.COMPACT
    finally:
        asyncio.run(dream.close())


def test_settings_decide_how_it_answers_but_not_what_it_learnt(small_dream):
    config = DreamConfig(history=False, references=0, grounding=False, ledger=False)
    dream = open_dream(small_dream / "dream", config=config)
    asyncio.run(dream.close())
    assert dream.world.grounding is None
    assert not dream.world.ledger
    assert dream.card.switches.history
    assert dream.world.references == 3


def test_a_second_dream_must_agree(small_dream, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(small_dream / "dream", other)
    words = load_tokenizer(other / "model").vocab_size
    make_tiny("1m", words, seed=5).save(other / "model")
    config = DreamConfig(second=str(other), agree_on="flags")
    dream = open_dream(small_dream / "dream", config=config)

    async def one_step():
        env = await dream.world.open(dream.tasks(Split.TRAIN)[0])
        opening = await env.reset(0)
        way = next(word for word in ("east", "west") if word in opening.observation.text)
        try:
            return await env.step(f"move {way}")
        finally:
            await dream.close()

    result = asyncio.run(one_step())
    assert result.truncated and not result.success
    assert result.account.reasoning.startswith("[unknown] disagreement: ")
    assert not dream.world.pessimism.second.states


def test_confidence_may_be_that_of_the_flags_alone(small_dream):
    sure = {}

    async def one_step(dream):
        env = await dream.world.open(dream.tasks(Split.TRAIN)[0])
        opening = await env.reset(0)
        way = next(word for word in ("east", "west") if word in opening.observation.text)
        try:
            return (await env.predict(f"move {way}")).confidence
        finally:
            await dream.close()

    for what in ("reply", "flags"):
        config = DreamConfig(confidence_of=what)
        sure[what] = asyncio.run(one_step(open_dream(small_dream / "dream", config=config)))
    assert 0 < sure["reply"] <= sure["flags"] <= 1
    with pytest.raises(ConfigError, match="confidence_of 'flag'"):
        DreamConfig(confidence_of="flag")


def test_a_second_dream_must_be_one_and_of_the_same_environment(small_dream, store, tmp_path):
    config = DreamConfig(second=str(small_dream / "dream"))
    card = replace(card_for(store, ENV, DreamConfig()), env="twx/coin")
    with pytest.raises(ConfigError, match=f"dreams {ENV}, not twx/coin"):
        dream_over(ScriptedLLM([]), card, config=config)
    with pytest.raises(ConfigError, match="nowhere holds no dream"):
        dream_over(ScriptedLLM([]), card, config=DreamConfig(second=str(tmp_path / "nowhere")))
    with pytest.raises(ConfigError, match=r"agree_on 'flag'. Did you mean 'flags'"):
        DreamConfig(agree_on="flag")


def test_a_dream_whose_store_is_gone_says_what_to_do(small_dream, tmp_path):
    with pytest.raises(ConfigError, match=r"remembers with .*nowhere.sqlite, which is gone"):
        open_dream(small_dream / "dream", store=tmp_path / "nowhere.sqlite")


def test_another_store_may_be_given(small_dream, store):
    dream = open_dream(small_dream / "dream", store=store)
    asyncio.run(dream.close())
    assert dream.card.store == str(store)


def test_any_model_can_be_a_dream(store):
    card = card_for(store, ENV, DreamConfig(references=2))
    assert (card.env, card.style, card.references) == (ENV, Style.FULL, 2)
    assert "move east" in {f"{kind}".replace("_", "east") for kind in card.known.kinds}
    flags = "Refused: True\nDone: False\nSuccess: False\nReward: 0"
    reply = f"<think>no</think>\n<edit>\n> no\n</edit>\n{flags}"
    dream = dream_over(ScriptedLLM([reply]), card, config=DreamConfig())

    async def one_step():
        env = await dream.world.open(dream.tasks(Split.TRAIN)[0])
        await env.reset(0)
        return await env.step("move east")

    result = asyncio.run(one_step())
    assert result.refused and result.reward == 0
    assert len(result.account.references) == 2

    async def unrecorded():
        env = await dream.world.open(Task(f"{ENV}#99", ENV, "99", Split.TRAIN))
        await env.reset(0)

    with pytest.raises(EnvError, match="nobody has recorded how .*#99 opens"):
        asyncio.run(unrecorded())
    asyncio.run(dream.close())


def test_a_store_must_be_named_and_be_there(tmp_path):
    with pytest.raises(ConfigError, match="none was named: give --store"):
        store_path(ReplayConfig())
    with pytest.raises(ConfigError, match="there is none at .*nix"):
        store_path(ReplayConfig(store=str(tmp_path / "nix")))
    (tmp_path / "there").touch()
    assert store_path(ReplayConfig(store=str(tmp_path / "there"))) == Path(tmp_path / "there")


def test_the_only_environment_needs_no_name(store, tmp_path):
    with open_store(store) as opened:
        assert only_env(opened, wanted="twx/coin") == ENV
        assert only_env(opened, wanted=ENV) == ENV
        with pytest.raises(ConfigError, match=f"holds {ENV}; choose one"):
            only_env(opened, wanted="twx/mapreader")
    with (
        open_store(tmp_path / "empty.sqlite") as empty,
        pytest.raises(ConfigError, match="holds nothing: record some"),
    ):
        only_env(empty, wanted="twx/coin")


def test_tasks_by_name():
    tasks = [played(n).task for n in range(3)]
    assert named_task(tasks, f"{ENV}#2", where="it") == tasks[2]
    with pytest.raises(ConfigError, match=rf"it has no task '{ENV}#9'. Did you mean"):
        named_task(tasks, f"{ENV}#9", where="it")
