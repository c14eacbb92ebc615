"""A clock that tests turn, and a place to run coroutines in."""

import asyncio
import heapq
import itertools

import pytest


class ManualClock:
    """Virtual time: it jumps to the next wake-up whenever nobody has anything else to do."""

    def __init__(self):
        self._now = 1000.0
        self._sleepers = []
        self._order = itertools.count()

    def now(self):
        return self._now

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    def advance(self, seconds):
        self._now += seconds

    def run(self, main):
        """Run a coroutine to its end, in virtual time."""

        async def drive():
            task = asyncio.create_task(main)
            while not task.done():
                for _ in range(30):
                    await asyncio.sleep(0)
                if task.done():
                    break
                if self._sleepers:
                    when, _, woken = heapq.heappop(self._sleepers)
                    if not woken.done():
                        self._now = max(self._now, when)
                        woken.set_result(None)
                else:
                    await asyncio.sleep(0.001)  # Somebody waits for real input.
            return await task

        return asyncio.run(drive())


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(scope="session")
def make_clock():
    return ManualClock
