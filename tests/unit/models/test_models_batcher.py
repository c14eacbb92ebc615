"""Questions that come together are answered together, and the event loop lives meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from dreamgym.errors import ConfigError, LLMError
from dreamgym.models.batcher import MicroBatcher


class Doubler:
    """Doubles numbers; remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.free = threading.Event()
        self.free.set()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        self.free.wait(10)
        if 13 in numbers:
            raise ZeroDivisionError("thirteen")
        if 14 in numbers:
            raise ConfigError("fourteen is too long")
        return [2 * number for number in numbers]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield executor


def make(compute: Doubler, thread: ThreadPoolExecutor, **limits: int) -> MicroBatcher[int, int]:
    settings = {"max_size": 100, "max_weight": 1000, **limits}
    return MicroBatcher(compute, thread, tick_seconds=0.001, **settings)


def test_questions_that_come_together_are_one_batch(thread: ThreadPoolExecutor) -> None:
    compute = Doubler()

    async def ask() -> list[int]:
        batcher = make(compute, thread)
        return await asyncio.gather(*(batcher.ask(number) for number in range(10)))

    assert asyncio.run(ask()) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert compute.batches == [list(range(10))]


def test_batches_keep_to_size_and_weight(thread: ThreadPoolExecutor) -> None:
    compute = Doubler()

    async def ask() -> None:
        batcher = make(compute, thread, max_size=3, max_weight=10)
        weights = [1, 1, 1, 1, 6, 4, 99, 1]
        await asyncio.gather(*(batcher.ask(n, weight=w) for n, w in enumerate(weights)))

    asyncio.run(ask())
    assert compute.batches == [[0, 1, 2], [3, 4], [5], [6], [7]]


def test_what_comes_during_a_batch_goes_into_the_next(thread: ThreadPoolExecutor) -> None:
    compute = Doubler()
    compute.free.clear()

    async def ask() -> list[int]:
        batcher = make(compute, thread)
        first = asyncio.create_task(batcher.ask(1))
        while not compute.batches:
            await asyncio.sleep(0.001)  # the loop lives while the batch is computed
        rest = [asyncio.create_task(batcher.ask(number)) for number in (2, 3)]
        await asyncio.sleep(0.02)
        compute.free.set()
        return [await task for task in (first, *rest)]

    assert asyncio.run(ask()) == [2, 4, 6]
    assert compute.batches == [[1], [2, 3]]


def test_who_was_answered_is_waited_for_as_long_as_a_part_of_a_batch(
    thread: ThreadPoolExecutor,
) -> None:
    batches: list[int] = []

    def slow(numbers: Sequence[int]) -> Sequence[int]:
        batches.append(len(numbers))
        time.sleep(0.4)
        return numbers

    async def player(batcher: MicroBatcher[int, int], pause: float) -> None:
        for number in range(4):
            await batcher.ask(number)
            await asyncio.sleep(pause)

    async def play(*pauses: float) -> None:
        batcher = MicroBatcher(slow, thread, max_size=9, max_weight=99, tick_seconds=0.001)
        await asyncio.gather(*(player(batcher, pause) for pause in pauses))

    asyncio.run(play(0, 0.02, 0.04))
    assert batches == [3, 3, 3, 3], "a tick alone would have parted them"
    batches.clear()
    asyncio.run(play(0, 0, 0.8))
    assert batches[:3] == [3, 2, 2], "who is slow is not waited for"


def test_who_comes_alone_is_answered_at_once(thread: ThreadPoolExecutor) -> None:
    async def ask() -> float:
        batcher = MicroBatcher(Doubler(), thread, max_size=9, max_weight=99, tick_seconds=0.5)
        await batcher.ask(1)
        await batcher.ask(2)
        start = time.perf_counter()
        await batcher.ask(3)
        return time.perf_counter() - start

    assert asyncio.run(ask()) < 0.4, "nobody else has asked lately, so there is no tick to wait"


def test_errors_reach_those_who_asked_and_no_one_else(thread: ThreadPoolExecutor) -> None:
    async def ask() -> list[object]:
        batcher = make(Doubler(), thread, max_size=1)
        asked = (batcher.ask(number) for number in (1, 13, 14, 2))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, broken, refused, last = asyncio.run(ask())
    assert (first, last) == (2, 4)
    assert isinstance(broken, LLMError)
    assert str(broken) == "local model: ZeroDivisionError: thirteen"
    assert isinstance(refused, ConfigError)


def test_who_gives_up_is_not_computed_for(thread: ThreadPoolExecutor) -> None:
    compute = Doubler()

    async def ask() -> int:
        batcher = make(compute, thread)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await batcher.ask(5)
        return await batcher.ask(6)

    assert asyncio.run(ask()) == 12
    assert compute.batches == [[6]]


def test_it_serves_one_event_loop_after_another(thread: ThreadPoolExecutor) -> None:
    batcher = make(Doubler(), thread)

    async def ask(number: int) -> int:
        return await batcher.ask(number)

    assert [asyncio.run(ask(number)) for number in (1, 2)] == [2, 4]


def test_closing_refuses_what_waits_and_what_comes(thread: ThreadPoolExecutor) -> None:
    compute = Doubler()
    compute.free.clear()

    async def ask() -> list[object]:
        batcher = make(compute, thread)
        under_way = asyncio.create_task(batcher.ask(1))
        while not compute.batches:
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(batcher.ask(2))
        await asyncio.sleep(0)
        threading.Thread(target=lambda: (time.sleep(0.02), compute.free.set())).start()
        await batcher.close()
        late = asyncio.create_task(batcher.ask(3))
        return await asyncio.gather(under_way, waiting, late, return_exceptions=True)

    done, waited, late = asyncio.run(ask())
    assert done == 2
    assert str(waited) == "this model was closed"
    assert str(late) == "this model is closed"
