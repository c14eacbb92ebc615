import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym.errors import ConfigError
from dreamgym.llm.limits import Limits, Throttle


def start_times(clock, limits, sizes, *, used=None, duration=0.0):
    """Send requests of these sizes all at once; returns when each was let go, from 0."""
    throttle = Throttle(limits, clock=clock)
    began = clock.now()
    times = []

    async def one(size):
        async with throttle.slot(size) as slot:
            times.append(clock.now() - began)
            if duration:
                await clock.sleep(duration)
            if used is not None:
                slot.used(used)

    async def everything():
        await asyncio.gather(*(one(size) for size in sizes))

    clock.run(everything())
    return times


def test_requests_are_evenly_spaced_with_no_burst(clock):
    times = start_times(clock, Limits(requests_per_minute=30), [1] * 5)
    assert times == pytest.approx([0, 2, 4, 6, 8])


def test_tokens_are_spread_by_size(clock):
    times = start_times(clock, Limits(tokens_per_minute=600), [100, 50, 10, 10])
    assert times == pytest.approx([0, 10, 15, 16])


def test_tokens_that_were_not_used_are_given_back(clock):
    limits = Limits(tokens_per_minute=600, concurrency=1)
    assert start_times(clock, limits, [100] * 3, used=20) == pytest.approx([0, 2, 4])


def test_tokens_beyond_the_guess_are_charged(clock):
    limits = Limits(tokens_per_minute=600, concurrency=1)
    assert start_times(clock, limits, [10] * 3, used=100) == pytest.approx([0, 10, 20])


def test_concurrency_is_a_limit_of_its_own(clock):
    times = start_times(clock, Limits(concurrency=2), [1] * 6, duration=5.0)
    assert times == pytest.approx([0, 0, 5, 5, 10, 10])


def test_without_limits_nobody_waits(clock):
    assert start_times(clock, Limits(concurrency=50), [10**6] * 20) == [0] * 20


def test_idle_time_buys_no_burst(clock):
    throttle = Throttle(Limits(requests_per_minute=60), clock=clock)
    times = []

    async def main():
        for pause in (0.0, 100.0, 0.0, 0.0):
            await clock.sleep(pause)
            async with throttle.slot(1):
                times.append(clock.now() - 1000)

    clock.run(main())
    assert times == pytest.approx([0, 100, 101, 102])


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=30),
    rpm=st.integers(5, 300),
    tpm=st.integers(500, 20_000),
)
def test_no_window_of_a_minute_passes_the_rates(make_clock, sizes, rpm, tpm):
    limits = Limits(requests_per_minute=rpm, tokens_per_minute=tpm, concurrency=64)
    times = start_times(make_clock(), limits, sizes)
    for first in range(len(times)):
        # All but the last of a window fit in it: the last may start a debt at the window's end.
        inside = [i for i in range(first, len(times)) if times[i] < times[first] + 60 - 1e-6]
        assert len(inside) <= rpm + 1
        assert sum(sizes[i] for i in inside[:-1]) <= tpm + 1


def test_a_server_that_asks_for_a_pause_stops_everyone(clock):
    throttle = Throttle(Limits(), clock=clock)
    times = []

    async def one():
        async with throttle.slot(1):
            times.append(clock.now() - 1000)

    async def main():
        await one()
        throttle.hold(7.5)
        throttle.hold(3.0)
        await asyncio.gather(one(), one())

    clock.run(main())
    assert times == pytest.approx([0, 7.5, 7.5])


def test_a_cancelled_waiter_uses_up_nothing(clock):
    throttle = Throttle(Limits(requests_per_minute=60, concurrency=2), clock=clock)
    times = []

    async def one():
        async with throttle.slot(1):
            times.append(clock.now() - 1000)

    async def main():
        await one()
        waiting = asyncio.create_task(one())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.gather(one(), one(), one())

    clock.run(main())
    assert times == pytest.approx([0, 1, 2, 3])


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"retries": -1}, {"attempt_seconds": 0}, {"reply_bytes": -5}]
)
def test_limits_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Limits(**wrong)
