import asyncio

import pytest

from dreamgym.agents import Behaviour
from dreamgym.rollout import start
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.rollout.start import CommonStart
from dreamgym.testing import CorridorWorld
from dreamgym.types import Action, Source, Split


def played(world, acts, *, episodes, concurrency):
    """Play with an agent that writes down when it acts; return the trajectories."""

    class Walker:
        async def act(self, task, past, now):
            acts.append((task.key, len(past), world.opened))
            return Action("go right")

    slots = plan_slots(
        world.tasks(Split.TRAIN),
        episodes=episodes,
        behaviour=lambda index: Behaviour("walker", lambda env, seed: Walker()),
        answerer=Answerer(Source.REAL, "corridor 1", "m"),
        max_steps=2,
        seed=0,
    )

    async def run():
        return [one async for one in collect(slots, world, concurrency=concurrency)]

    return asyncio.run(run())


class SlowlyOpened:
    """A corridor that opens one episode after the other, and one of them never or not at all."""

    def __init__(self, *, failing=(), hanging=()):
        self._inner, self._failing, self._hanging = CorridorWorld(), failing, hanging
        self.source, self.tasks = self._inner.source, self._inner.tasks
        self.opened = 0
        self._turn = asyncio.Lock()

    async def open(self, task, memory=None):
        if task.key in self._hanging:
            await asyncio.sleep(0.5)
        async with self._turn:
            await asyncio.sleep(0.002)
            self.opened += 1
            if task.key in self._failing:
                raise OSError("no such game")
        return await self._inner.open(task, memory)


def test_the_first_episodes_act_when_all_of_them_are_open():
    acts = []
    world = SlowlyOpened()
    assert all(one.error is None for one in played(world, acts, episodes=9, concurrency=6))
    assert {opened for _, past, opened in acts[:6] if not past} == {6}
    assert len([1 for _, past, _ in acts if not past]) == 9


def test_who_does_not_come_is_not_waited_for():
    acts = []
    keys = [task.key for task in CorridorWorld().tasks(Split.TRAIN)]
    found = played(SlowlyOpened(failing=keys[1:3]), acts, episodes=5, concurrency=5)
    assert [one.error is None for one in found] == [True, False, False, True, True]
    assert len([1 for _, past, _ in acts if not past]) == 3


def test_who_hangs_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(start, "LONGEST_WAIT", 0.05)
    acts = []
    keys = [task.key for task in CorridorWorld().tasks(Split.TRAIN)]
    found = played(SlowlyOpened(hanging=keys[:1]), acts, episodes=4, concurrency=4)
    assert all(one.error is None for one in found)
    assert {opened for _, past, opened in acts[:3] if not past} == {3}


@pytest.mark.parametrize("count", [1, 3])
def test_later_comers_just_go(count):
    async def run():
        begin = CommonStart()
        for _ in range(count):
            with begin.awaited() as entry:
                await asyncio.wait_for(entry.enter(), 0.5)
                await asyncio.wait_for(entry.enter(), 0.5)

    asyncio.run(run())
