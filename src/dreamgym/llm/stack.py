"""A server with everything around it, as one back end: HTTP inside, then the breaker, then a cache.

`build.make_llm` makes it of settings. It only puts parts together and adds their figures up; each
part stands in a file of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dreamgym.llm.breaker import BreakerLLM, EventSink
from dreamgym.llm.cache import CachedLLM
from dreamgym.llm.http import HttpLLM
from dreamgym.types import Completion, Request

logger = logging.getLogger(__name__)


class StackedLLM:
    """One server, guarded and remembered. It closes all its parts.

    Args:
        server: who answers.
        failures: see `BreakerLLM`.
        longest_wait: see `BreakerLLM`.
        patience: seconds of outage after which callers get `LLMDown`.
        cache: the file that answers are kept in; None keeps none.
        offline: answer from the cache alone.
        listeners: are told when everyone waits for the server, and when it is back. Without any,
            a warning is logged, because a run that stands still must not be silent about it.
    """

    def __init__(
        self,
        server: HttpLLM,
        *,
        failures: int = 5,
        longest_wait: float = 60.0,
        patience: float = 1800.0,
        cache: Path | None = None,
        offline: bool = False,
        listeners: Sequence[EventSink] = (),
    ) -> None:
        self.server = server
        self._listeners = tuple(listeners) or (_log,)
        self._breaker = BreakerLLM(
            server,
            failures=failures,
            first_wait=min(1.0, longest_wait),
            longest_wait=longest_wait,
            give_up_after=patience,
            on_event=self._tell,
        )
        self._cache = (
            CachedLLM(self._breaker, cache, identity=server.identity, offline=offline)
            if cache is not None
            else None
        )

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.server.model

    async def complete(self, request: Request) -> Completion:
        """Answer one request: from the cache, or from the server as soon as it is there."""
        return await (self._cache or self._breaker).complete(request)

    def _tell(self, name: str, **details: Any) -> None:
        for listener in self._listeners:
            listener(name, **details)

    def metrics(self) -> dict[str, float]:
        """Return the figures of all parts: calls, retries, pauses, cost, tokens, cache."""
        cached = self._cache.metrics() if self._cache is not None else {}
        spent = self.server.spend.metrics()
        return {**self.server.metrics(), **self._breaker.metrics(), **spent, **cached}

    async def close(self) -> None:
        """Close cache, breaker and server."""
        await (self._cache or self._breaker).close()


def outage_words(name: str, **details: Any) -> str:
    """Return an event of the breaker in words for people, or nothing where there is no need."""
    if name in ("llm_paused", "llm_probe_failed"):
        return (
            f"The language model does not answer: {details['error']}. Waiting; next try in "
            f"{details['next_in']:.0f} s. Ctrl-C is safe."
        )
    if name == "llm_resumed":
        return f"The language model answers again, after {details['seconds']:.0f} s."
    return ""


def _log(name: str, **details: Any) -> None:
    words = outage_words(name, **details)
    if words:
        logger.warning("%s", words)
