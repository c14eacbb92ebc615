"""What the chaos server can do wrong, and when it does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import derive_seed


class Fault(StrEnum):
    """One way to spoil an answer."""

    RATE_LIMIT = "rate_limit"
    """Status 429, without a hint when to come back."""
    RATE_LIMIT_SECONDS = "rate_limit_seconds"
    """Status 429 with `retry-after` in seconds."""
    RATE_LIMIT_DATE = "rate_limit_date"
    """Status 429 with `retry-after` as a date, one second ahead."""
    SERVER_ERROR = "server_error"
    """Status 500 with an error object."""
    UNAVAILABLE = "unavailable"
    """Status 503 with a page of HTML, as from a proxy."""
    HANG = "hang"
    """No answer, for as long as the client waits."""
    DRIP = "drip"
    """The right answer, at twenty bytes per second."""
    RESET = "reset"
    """The connection is reset."""
    HANG_UP = "hang_up"
    """The connection is closed without an answer."""
    TRUNCATED = "truncated"
    """Half of the promised bytes, then the connection is closed."""
    TRUNCATED_CHUNKS = "truncated_chunks"
    """A chunked answer whose end never comes."""
    CUT_JSON = "cut_json"
    """A complete answer whose JSON stops in the middle."""
    GARBLED_JSON = "garbled_json"
    """Bytes that are not JSON."""
    WRONG_TYPE = "wrong_type"
    """Status 200 and a page of HTML."""
    WRONG_SHAPE = "wrong_shape"
    """JSON that is something else than a completion."""
    EMPTY_BODY = "empty_body"
    """Status 200 and nothing."""
    EMPTY_CHOICES = "empty_choices"
    """A completion without a choice."""
    NO_TEXT = "no_text"
    """A choice whose text is null."""
    BAD_REQUEST = "bad_request"
    """Status 400: the server says that the request is at fault."""
    EMPTY_TEXT = "empty_text"
    """A proper completion that says nothing."""
    NONSENSE = "nonsense"
    """A proper completion whose text is not what was asked for."""


CONTENT_FAULTS = (Fault.EMPTY_TEXT, Fault.NONSENSE)
"""The transport is fine, the words are not: whoever reads the answer must notice."""
TRANSPORT_FAULTS = tuple(
    fault for fault in Fault if fault not in (*CONTENT_FAULTS, Fault.BAD_REQUEST)
)
"""A client that tries again gets the right answer in the end."""


class FaultPlan:
    """Decides which request goes wrong, and how.

    Args:
        script: faults for the first requests, in order of arrival; None means a right answer.
        rate: the share of later requests that go wrong.
        kinds: what may go wrong with those.
        seed: of the choice. It depends on the prompt and on how often that prompt was sent, not
            on the order in which requests arrive.
    """

    def __init__(
        self, *, script: Sequence[Fault | None], rate: float, kinds: Sequence[Fault], seed: int
    ) -> None:
        if not 0 <= rate <= 1:
            raise ConfigError(f"the rate of faults is {rate}; it is a share between 0 and 1")
        if rate and not kinds:
            raise ConfigError("a rate of faults needs kinds of faults to choose from")
        self._script = list(reversed(script))
        self._rate = rate
        self._kinds = tuple(kinds)
        self._seed = seed
        self._seen: Counter[str] = Counter()

    def choose(self, prompt: str) -> Fault | None:
        """Return what goes wrong with the next request, or None."""
        if self._script:
            return self._script.pop()
        self._seen[prompt] += 1
        rng = random.Random(derive_seed(self._seed, prompt, self._seen[prompt]))
        return rng.choice(self._kinds) if rng.random() < self._rate else None


def fault_named(name: str) -> Fault:
    """Return a fault by its name."""
    try:
        return Fault(name)
    except ValueError:
        raise ConfigError(f"no fault '{name}'.{did_you_mean(name, list(Fault))}") from None
