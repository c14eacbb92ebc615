"""Two episodes compared: where they part is said in words."""

from __future__ import annotations

import asyncio

from dreamgym.envs.bench import TURNS, Bench, Played, difference, follow, sample_tasks, walk
from dreamgym.envs.world import open_world
from dreamgym.types import Observation, Opening, Split, StepResult, Task

OPENING = Opening(Task("t", "e", "k", Split.TRAIN), Observation("start"))


def played(*texts: str, start: str = "start") -> Played:
    results = tuple(StepResult(Observation(text)) for text in texts)
    opening = Opening(OPENING.task, Observation(start))
    return Played(opening, tuple(f"go {turn}" for turn in range(len(texts))), results)


def test_equal_episodes_do_not_part() -> None:
    assert difference(played("a", "b"), played("a", "b")) == ""


def test_where_episodes_part_is_said() -> None:
    assert difference(played("a"), played("a", start="elsewhere")).startswith("began once with")
    parted = difference(played("a", "b"), played("a", "c" * 400))
    assert parted.startswith("answered ['go 0', 'go 1'] once with StepResult(")
    assert parted.endswith("...")
    assert difference(played("a", "b"), played("a")) == "ended once after 2 turns and once after 1"


def test_walks_repeat_and_end() -> None:
    async def look() -> None:
        spec = "py/broken_engines:make_engine"
        async with open_world(spec, workers=1) as world, open_world(spec, workers=1) as other:
            tasks = await sample_tasks(world, 4)
            assert [task.split.value for task in tasks] == ["train", "dev", "test", "train"]
            env = await world.open(tasks[0])
            one, two = await walk(env, 3), await walk(env, 3)
            assert difference(one, two) == ""
            assert 0 < len(one.results) <= TURNS
            bench = Bench(world, other=other, tasks=tasks)
            assert await bench.played(tasks[0]) is await bench.played(tasks[0])
            await env.reset(0)
            results = await follow(env, (*await env.expert(), "too much"))
            assert results[-1].success

    asyncio.run(look())
