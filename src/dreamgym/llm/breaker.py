"""A circuit breaker: when the back end is down, everyone waits and one caller at a time knocks.

It turns an outage into a pause. Calls that meet the outage are made again once it is over; only
the few that failed before it was noticed are lost. It judges whole calls, after their retries.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from dreamgym.errors import LLMBudget, LLMDown, LLMError, LLMRefused, ReplyFormatError
from dreamgym.llm.clock import Clock, SystemClock
from dreamgym.protocols import LLM
from dreamgym.types import Completion, Request

_NOT_AN_OUTAGE = (LLMRefused, LLMBudget, ReplyFormatError)
"""Errors of a server that is there and answers."""


class EventSink(Protocol):
    """Takes note of events; the run directory's `event` is one."""

    def __call__(self, name: str, **details: Any) -> None:
        """Write an event down."""


class BreakerLLM:
    """A back end that pauses through outages of another one.

    Args:
        inner: the back end.
        failures: how many calls must fail one after another until it counts as down.
        first_wait: seconds until the first probe; each further one doubles the wait.
        longest_wait: the most seconds between two probes.
        give_up_after: seconds of outage after which every caller gets `LLMDown`, for good.
        on_event: called with `llm_paused`, `llm_probe_failed`, `llm_resumed` and `llm_gave_up`.
        clock: for tests.
    """

    def __init__(
        self,
        inner: LLM,
        *,
        failures: int = 5,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
        give_up_after: float = 1800.0,
        on_event: EventSink | None = None,
        clock: Clock | None = None,
    ) -> None:
        if failures < 1:
            raise ValueError(f"failures is {failures}; it must be at least 1")
        self._inner = inner
        self._failures = failures
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._give_up_after = give_up_after
        self._on_event = on_event
        self._clock: Clock = clock or SystemClock()
        self._knock = asyncio.Lock()
        self._failed_in_a_row = 0
        self._down_since: float | None = None
        self._next_probe = 0.0
        self._probes = 0
        self._last_words = ""
        self._gave_up = ""
        self._pauses = 0
        self._paused_seconds = 0.0

    async def complete(self, request: Request) -> Completion:
        """Answer one request, waiting while the back end is down."""
        while True:
            if self._gave_up:
                raise LLMDown(self._gave_up)
            if self._down_since is not None:
                answer = await self._wait_or_knock(request)
                if answer is not None:
                    return answer
                continue
            try:
                answer = await self._inner.complete(request)
            except LLMError as error:
                if isinstance(error, _NOT_AN_OUTAGE):
                    self._is_up()
                    raise
                self._note_failure(error)
                if self._down_since is None:
                    raise
            else:
                self._is_up()
                return answer

    async def _wait_or_knock(self, request: Request) -> Completion | None:
        """Wait for one's turn to probe; returns an answer only to the one whose probe got it."""
        async with self._knock:
            if self._down_since is None or self._gave_up:
                return None
            ends = self._down_since + self._give_up_after
            await self._clock.sleep(max(0.0, min(self._next_probe, ends) - self._clock.now()))
            if self._down_since is None:
                return None
            if self._clock.now() >= ends:
                self._give_up()
                return None
            try:
                answer = await self._inner.complete(request)
            except LLMError as error:
                if isinstance(error, _NOT_AN_OUTAGE):
                    self._is_up()
                    raise
                # Back to the end of the queue: if it is this very request that the server cannot
                # stand, the next one will show that the server is up.
                self._note_failed_probe(error)
                return None
            self._is_up()
            return answer

    def _note_failure(self, error: LLMError) -> None:
        self._failed_in_a_row += 1
        self._last_words = str(error)
        if self._down_since is None and self._failed_in_a_row >= self._failures:
            self._down_since = self._clock.now()
            self._next_probe = self._down_since + self._first_wait
            self._probes = 0
            self._pauses += 1
            self._event(
                "llm_paused",
                failures=self._failed_in_a_row,
                next_in=self._first_wait,
                error=self._last_words,
            )

    def _note_failed_probe(self, error: LLMError) -> None:
        self._probes += 1
        self._last_words = str(error)
        # The exponent is bounded because 2.0 ** 2000 overflows.
        wait = min(self._longest_wait, self._first_wait * 2.0 ** min(self._probes, 60))
        self._next_probe = self._clock.now() + wait
        self._event("llm_probe_failed", probe=self._probes, next_in=wait, error=self._last_words)

    def _is_up(self) -> None:
        self._failed_in_a_row = 0
        if self._down_since is not None:
            seconds = self._end_pause()
            self._event("llm_resumed", seconds=seconds, probes=self._probes)

    def _give_up(self) -> None:
        seconds = self._end_pause()
        self._gave_up = (
            f"the language model was down for {seconds:.0f} s, {self._probes} probes failed; "
            f"the last one said: {self._last_words}. Start it again and resume the run"
        )
        self._event("llm_gave_up", seconds=seconds, probes=self._probes, error=self._last_words)

    def _end_pause(self) -> float:
        seconds = self._clock.now() - (self._down_since or 0.0)
        self._down_since = None
        self._paused_seconds += seconds
        return seconds

    def _event(self, name: str, **details: Any) -> None:
        if self._on_event is not None:
            self._on_event(name, **details)

    def metrics(self) -> dict[str, float]:
        """Return how often and how long everyone waited."""
        return {"llm/pauses": float(self._pauses), "llm/paused_seconds": self._paused_seconds}

    async def close(self) -> None:
        """Close the back end."""
        await self._inner.close()
