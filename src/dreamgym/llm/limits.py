"""How much a server is asked at once and per minute, and for how long it is waited for.

`Limits` are the settings, `Throttle` keeps to them. Nothing here knows about HTTP or money.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dreamgym.errors import ConfigError
from dreamgym.llm.clock import Clock

_NO_TIME = 1e-6
"""Waits shorter than this are over: adding them to a large clock reading may change nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a back end may do to a server, and how long it tries."""

    concurrency: int = 16
    """Requests on their way at the same time."""
    requests_per_minute: float = 0.0
    """Evenly spaced, with no burst; 0 means no limit."""
    tokens_per_minute: float = 0.0
    """Prompt and completion together, evenly spread; 0 means no limit."""
    attempt_seconds: float = 120.0
    """How long one attempt may take, from connecting to the last byte."""
    total_seconds: float = 600.0
    """How long a call may take: its attempts and the waits between them.

    Waiting for one's own limits or for the spending ceiling does not count.
    """
    retries: int = 5
    """Attempts after the first when the transport fails; an answer's content is not judged here."""
    backoff_seconds: float = 0.5
    """The wait before the first retry; each further one doubles it."""
    backoff_cap: float = 30.0
    """The longest wait that backoff alone asks for; a server may ask for more."""
    reply_bytes: int = 32_000_000
    """A longer reply is cut off and counts as broken."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("concurrency", "attempt_seconds", "total_seconds", "reply_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in (
            "requests_per_minute",
            "tokens_per_minute",
            "retries",
            "backoff_seconds",
            "backoff_cap",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must not be below 0")


class Pace:
    """A smooth rate: each unit pushes the next start a little further into the future."""

    def __init__(self, per_minute: float) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self.free_at = float("-inf")

    def book(self, amount: float, *, now: float) -> None:
        """Use up some units, starting now."""
        self.free_at = max(self.free_at, now) + amount * self._seconds_each

    def correct(self, amount: float) -> None:
        """Add units that were used beyond the booked ones, or give some back."""
        self.free_at += amount * self._seconds_each


class Slot:
    """The right to send one request."""

    def __init__(self, tokens: Pace, *, booked: int) -> None:
        self._tokens = tokens
        self._booked = booked

    def used(self, tokens: int) -> None:
        """Say how many tokens it really took."""
        self._tokens.correct(tokens - self._booked)
        self._booked = tokens


class Throttle:
    """Hands out slots, first come, first served."""

    def __init__(self, limits: Limits, *, clock: Clock) -> None:
        self._clock = clock
        self._room = asyncio.Semaphore(limits.concurrency)
        self._turn = asyncio.Lock()
        self._requests = Pace(limits.requests_per_minute)
        self._tokens = Pace(limits.tokens_per_minute)
        self._held_until = float("-inf")
        self.waited = 0.0
        """Seconds that callers spent waiting for a rate, in total."""

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[Slot]:
        """Wait until a request of about this many tokens may start; it ends with the block."""
        async with self._room:
            async with self._turn:
                # Only the head of the queue waits here, so what it sees is what it gets, and a
                # caller that is cancelled while waiting has used up nothing.
                while (wait := self._ready_at() - self._clock.now()) > _NO_TIME:
                    self.waited += wait
                    await self._clock.sleep(wait)
                self._requests.book(1, now=self._clock.now())
                self._tokens.book(tokens, now=self._clock.now())
            yield Slot(self._tokens, booked=tokens)

    def hold(self, seconds: float) -> None:
        """Start nothing for a while: the server asked for it."""
        self._held_until = max(self._held_until, self._clock.now() + seconds)

    def _ready_at(self) -> float:
        return max(self._requests.free_at, self._tokens.free_at, self._held_until)
