"""Jobs side by side: results in order, never too many at once, nothing lost on the way out."""

import asyncio
from functools import partial

import pytest

from dreamgym.in_order import RUN_AHEAD, in_order


async def gather(jobs, **options):
    return [result async for result in in_order(jobs, **options)]


def test_results_come_in_order_whatever_finishes_first():
    async def job(number):
        await asyncio.sleep(0.001 * ((number * 7) % 5))
        return number

    assert asyncio.run(gather((partial(job, n) for n in range(50)), concurrency=8)) == [*range(50)]


def test_no_more_run_at_once_than_asked_for_and_jobs_are_taken_as_needed():
    now, most, taken = 0, 0, []

    async def job():
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    def jobs():
        for number in range(100):
            taken.append(number)
            yield job

    async def main():
        yielded = 0
        async for _ in in_order(jobs(), concurrency=3):
            assert len(taken) - yielded <= RUN_AHEAD * 3
            yielded += 1

    asyncio.run(main())
    assert most == 3
    assert len(taken) == 100


def test_a_failure_stops_the_rest_and_what_is_done_is_handed_over():
    async def job(number):
        await asyncio.sleep(0.02 if number == 0 else 0.0)
        if number == 0:
            raise RuntimeError("gone")
        if number == 3:
            await asyncio.sleep(60)
        return number

    left = []
    with pytest.raises(RuntimeError, match="gone"):
        asyncio.run(
            gather([partial(job, n) for n in range(4)], concurrency=4, on_leftover=left.append)
        )
    assert left == [1, 2]
