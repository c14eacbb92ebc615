"""The event loop in a thread of its own."""

import asyncio
import threading

import pytest

from dreamgym.loop_thread import LoopThread


async def where():
    await asyncio.sleep(0)
    return threading.current_thread().name, id(asyncio.get_running_loop())


async def fail():
    raise KeyError("lost")


def test_everything_runs_in_the_same_loop_and_not_in_this_thread():
    with LoopThread() as loop:
        first, second = loop.run(where()), loop.run(where())
    assert first == second
    assert first[0] == "dreamgym-loop"


def test_what_a_coroutine_raises_is_raised():
    with LoopThread() as loop:
        with pytest.raises(KeyError, match="lost"):
            loop.run(fail())
        assert loop.run(where())


def test_closing_ends_the_thread_and_what_still_runs():
    async def start():
        task = asyncio.ensure_future(asyncio.sleep(1000))
        await asyncio.sleep(0)
        return task

    loop = LoopThread()
    sleeper = loop.run(start())
    loop.close()
    loop.close()
    assert sleeper.cancelled()
    assert loop.closed
    assert "dreamgym-loop" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(RuntimeError, match="closed"):
        loop.run(where())
