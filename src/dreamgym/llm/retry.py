"""What can go wrong on the way to a server, and how long to wait before trying again."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from dreamgym.llm.limits import Limits
from dreamgym.types import Usage


class FailureKind(StrEnum):
    """What an attempt failed of."""

    TIMEOUT = "timeout"
    """No whole answer in time."""
    RATE = "rate_limit"
    """The server said: later."""
    SERVER = "server_error"
    """The server said: I am broken."""
    NETWORK = "network"
    """The connection failed."""
    REPLY = "broken_reply"
    """An answer came that is not what the protocol says."""
    REFUSED = "refused"
    """The server will not take the request, now or later."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt ended that brought no completion."""

    kind: FailureKind
    words: str
    """What happened, for people; never holds a key."""
    wait: float | None = None
    """Seconds that the server asked to wait."""
    billed: bool = False
    """The server may have done the work all the same."""
    usage: Usage | None = None
    """What the server says it took, where it says so."""


def is_transient(status: int) -> bool:
    """Say whether a status may be gone at the next attempt."""
    return status in (408, 409, 425, 429) or status >= 500


def backoff(retry: int, limits: Limits, rng: random.Random) -> float:
    """Return the wait before the given retry (0 is the first): doubled each time, jittered."""
    # The exponent is bounded because 2.0 ** 2000 overflows.
    longest = min(limits.backoff_cap, limits.backoff_seconds * 2.0 ** min(retry, 60))
    return longest * (0.5 + 0.5 * rng.random())


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return how long a server asks to wait, in seconds, or None where it does not say.

    Reads `retry-after-ms`, and `retry-after` as a number or as a date. A date is compared with the
    server's own `date` header, so that clocks which differ do no harm.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    until, now = _date(text), _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds()) if until else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def _date(text: str) -> datetime | None:
    try:
        value = parsedate_to_datetime(text)
    except ValueError:
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
