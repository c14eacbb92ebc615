"""An event loop in a thread of its own: how synchronous code lives beside asynchronous worlds.

The caller's thread stays free to wait for a person or to serve a synchronous interface, and an
interrupt reaches it at once. Use it from one thread at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines one call at a time, all in the same event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program whose end forgot to close it can end.
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="dreamgym-loop", daemon=True
        )
        self._thread.start()
        self.closed = False
        """Whether nothing can be run any more."""

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end and return its result, or raise what it raises."""
        if self.closed:
            work.close()
            raise RuntimeError("this event loop was closed")
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Whoever is interrupted while waiting does not want the answer any more.
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and its thread. What still runs in it is cancelled."""
        if self.closed:
            return
        self.run(_cancel_others())
        self.closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> LoopThread:
        """Return itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.get_running_loop().shutdown_default_executor()
