"""The rules of every real episode, whatever engine answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from dreamgym.envs.world import RealWorld, WorldInfo, open_world
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Source, Split

SPEC = "py/misbehaving:make_engine"


def in_world(play: Callable[[RealWorld], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_world(SPEC, workers=1) as world:
            await play(world)

    asyncio.run(run())


def test_a_world_tells_what_it_is() -> None:
    async def play(world: RealWorld) -> None:
        assert (world.spec, world.source) == (SPEC, Source.REAL)
        assert await world.info() == WorldInfo(SPEC, "ledger 1", "as-is")

    in_world(play)
    assert open_world("py/a:b?z=1&a=2").spec == "py/a:b?a=2&z=1"


def test_tasks_and_entities_come_from_the_engine() -> None:
    async def play(world: RealWorld) -> None:
        tasks = await world.tasks(Split.DEV)
        assert [task.id for task in tasks[:2]] == ["ledger-dev-0", "ledger-dev-1"]
        assert await world.tasks(Split.DEV) == tasks
        env = await world.open(tasks[3])
        assert await world.entities(await env.reset(5)) == {"3/5:"}

    in_world(play)


def test_an_episode_is_reset_first_and_not_stepped_after_its_end() -> None:
    async def play(world: RealWorld) -> None:
        env = await world.open((await world.tasks(Split.TRAIN))[0])
        with pytest.raises(EnvError, match=r"env.step: task ledger-train-0 must be reset first"):
            await env.step("early")
        with pytest.raises(EnvError, match=r"env.expert: task ledger-train-0 must be reset first"):
            await env.expert()
        await env.reset(1)
        result = await env.step("win")
        assert (result.success, result.terminated, result.reward) == (True, True, 1.0)
        with pytest.raises(EnvError, match=r"env.step: .* ended after 1 steps; reset it"):
            await env.step("late")
        assert (await env.reset(1)).observation.text == "0/1: "
        assert (await env.step("again")).observation.text == "0/1: again"
        await env.close()
        await env.close()
        with pytest.raises(EnvError, match="was closed"):
            await env.reset(1)
        with pytest.raises(EnvError, match="was closed"):
            await env.step("very late")

    in_world(play)


def test_a_task_of_another_world_is_refused() -> None:
    async def play(world: RealWorld) -> None:
        task = (await world.tasks(Split.TRAIN))[0]
        with pytest.raises(ConfigError, match=r"belongs to 'twx/coin', this world is 'py/misbe"):
            await world.open(replace(task, env="twx/coin"))
        with pytest.raises(ConfigError, match="made up by a model"):
            await world.open(replace(task, source=Source.DREAM))
        with pytest.raises(ConfigError, match="no task 'x': keys are numbers"):
            await world.open(replace(task, key="x"))

    in_world(play)


def test_an_engine_that_begins_another_task_is_found_out() -> None:
    async def play(world: RealWorld) -> None:
        env = await world.open((await world.tasks(Split.TRAIN))[0])
        with pytest.raises(EnvError, match="ledger-train-0!"):
            await env.reset(1014)

    in_world(play)


def test_closing_an_episode_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    async def play(world: RealWorld) -> None:
        env = await world.open((await world.tasks(Split.TRAIN))[0])
        await env.reset(0)
        await env.step("stubborn")
        await env.close()

    with caplog.at_level(logging.WARNING):
        in_world(play)
    assert "task ledger-train-0: env.close: ValueError: I will not go" in caplog.text


def test_a_world_that_was_never_used_closes() -> None:
    async def run() -> None:
        await open_world(SPEC).close()

    asyncio.run(run())
