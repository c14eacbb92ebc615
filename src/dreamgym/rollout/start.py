"""A common start: the first episodes that are played side by side begin to act together.

Engines open one episode after the other. Whoever acts at once, alone, makes a model that answers
batches answer many batches of one, and each costs a good part of a full one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dreamgym.protocols import Agent
from dreamgym.types import Action, Observation, Step, Task

LONGEST_WAIT = 1.0
"""Seconds without a newcomer after which those who are there begin: an engine may hang."""


class CommonStart:
    """Lets those who wait go when everyone who is awaited is there; later comers just go."""

    def __init__(self) -> None:
        self._awaited = 0
        self._arrivals = 0
        self._open = asyncio.Event()

    @contextmanager
    def awaited(self) -> Iterator[Entry]:
        """Have someone awaited by the others, until they enter, or leave this block."""
        self._awaited += 1
        entry = Entry(self)
        try:
            yield entry
        finally:
            entry.arrive()

    def count_in(self) -> None:
        """Count one who is there, or will not come."""
        self._awaited -= 1
        self._arrivals += 1
        if not self._awaited:
            self._open.set()

    async def wait(self) -> None:
        """Wait until nobody is awaited, or nobody has come for a while."""
        while not self._open.is_set():
            seen = self._arrivals
            try:
                await asyncio.wait_for(self._open.wait(), LONGEST_WAIT)
            except TimeoutError:
                if seen == self._arrivals:
                    self._open.set()


class Entry:
    """One episode's way through a common start."""

    def __init__(self, start: CommonStart) -> None:
        self._start = start
        self._awaited = True

    def arrive(self) -> None:
        """Be awaited no longer."""
        if self._awaited:
            self._awaited = False
            self._start.count_in()

    async def enter(self) -> None:
        """Go as soon as the others are there."""
        if self._awaited:
            self.arrive()
            await self._start.wait()


class StartingAgent:
    """An agent that waits for the others before its first action."""

    def __init__(self, inner: Agent, entry: Entry) -> None:
        self._inner, self._entry = inner, entry

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return what the agent does next."""
        await self._entry.enter()
        return await self._inner.act(task, past, now)
