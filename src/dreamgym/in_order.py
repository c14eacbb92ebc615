"""Many coroutines side by side, a bounded number at once, with results in the order of the jobs.

What is started depends on the order of the jobs alone, and what comes out is in that order too, so
a caller that stores results as they come leaves the same behind whatever finishes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

RUN_AHEAD = 4
"""Jobs may finish this many times the concurrency before the oldest one: bounds memory."""


async def in_order(
    jobs: Iterable[Callable[[], Coroutine[Any, Any, T]]],
    *,
    concurrency: int,
    on_leftover: Callable[[T], None] = lambda result: None,
) -> AsyncGenerator[T, None]:
    """Run the jobs, many at a time, and yield their results in order.

    The first job that raises, in order, stops everything. When that happens, or when the caller
    stops early, results that are there but wait for a slower one before them go to `on_leftover`.
    """
    turnstile = asyncio.Semaphore(concurrency)
    running: deque[asyncio.Task[T]] = deque()

    async def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with turnstile:
            return await job()

    try:
        for job in jobs:
            running.append(asyncio.create_task(run(job)))
            if len(running) >= RUN_AHEAD * concurrency:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in running:
            if task.done() and not task.cancelled() and task.exception() is None:
                on_leftover(task.result())
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
