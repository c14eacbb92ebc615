"""What language models cost, and a ceiling that holds.

Before each attempt the most it can cost is reserved; afterwards the reservation turns into what
was really used. An attempt whose bill is unknown (cut off, timed out, cancelled) counts in full.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dreamgym.errors import ConfigError, LLMBudget, RecordError
from dreamgym.types import Usage

Booking = tuple[float, float, int, int, bool]
"""A line of a ledger: both prices, prompt and completion tokens, whether the bill is known."""


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """What a million tokens cost, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (0 <= self.prompt < math.inf and 0 <= self.completion < math.inf):
            raise ConfigError(f"prices {self.prompt} and {self.completion}: none may be negative")

    def of(self, usage: Usage) -> float:
        """Return the cost of some tokens."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


@dataclass(slots=True)
class _Tally:
    """What was used at one price. Whole numbers, so that the order of calls leaves no trace."""

    calls: int = 0
    unsure_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(self.prompt_tokens, self.completion_tokens)

    def add(self, usage: Usage, *, sure: bool) -> None:
        self.calls += 1
        self.unsure_calls += not sure
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens


class Reservation:
    """Money put aside for one attempt. Leaving the block without a word books it in full."""

    def __init__(self, spend: Spend, *, price: Price, most: Usage) -> None:
        self._spend = spend
        self.price = price
        self.most = most
        self._open = True

    def settle(self, usage: Usage) -> None:
        """Book what the server says it used."""
        self._close(usage, sure=True)

    def release(self) -> None:
        """Book nothing: the request was not taken, so nobody bills it."""
        self._close(None, sure=True)

    def _close(self, usage: Usage | None, *, sure: bool) -> None:
        if self._open:
            self._open = False
            self._spend._book(self, usage, sure=sure)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(self.most, sure=False)


class Spend:
    """Counts tokens and cost, over any number of back ends and prices, under one ceiling.

    Args:
        ceiling: the most that may be spent, in the currency of the prices; None means no ceiling.
        token_ceiling: the same in tokens, for servers without a price.
        ledger: a file that every booking is appended to and that is read back at the start, so
            that a run which is killed and started again cannot spend its ceiling twice. One
            process at a time may use it.
    """

    def __init__(
        self,
        *,
        ceiling: float | None = None,
        token_ceiling: int | None = None,
        ledger: Path | None = None,
    ) -> None:
        for name, value in (("ceiling", ceiling), ("token_ceiling", token_ceiling)):
            if value is not None and not value >= 0:
                raise ConfigError(f"{name} is {value}; it must be 0 or more")
        self._ceiling = math.inf if ceiling is None else ceiling
        self._token_ceiling = math.inf if token_ceiling is None else token_ceiling
        self._tallies: dict[Price, _Tally] = {}
        self._open: set[Reservation] = set()
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()
        self._ledger = ledger
        if ledger is not None:
            ledger.parent.mkdir(parents=True, exist_ok=True)
            for prompt_price, completion_price, prompt, completion, sure in _read_ledger(ledger):
                tally = self._tally(Price(prompt_price, completion_price))
                tally.add(Usage(prompt, completion), sure=sure)

    @property
    def cost(self) -> float:
        """What was spent so far."""
        return math.fsum(price.of(tally.usage) for price, tally in sorted(self._tallies.items()))

    @property
    def tokens(self) -> int:
        """Tokens used so far, prompts and completions together."""
        return sum(_total(tally.usage) for tally in self._tallies.values())

    async def reserve(self, most: Usage, *, price: Price) -> Reservation:
        """Put aside the most that a call can use, waiting for calls under way if need be.

        Raises `LLMBudget` when the call would not fit even if nothing else were under way.
        """
        # One at a time, in order of arrival: a large call is not overtaken by small ones for ever.
        async with self._turn:
            while True:
                self._check(most, price)
                if self._fits(most, price):
                    break
                self._settled.clear()
                await self._settled.wait()
            reservation = Reservation(self, price=price, most=most)
            self._open.add(reservation)
            return reservation

    def _check(self, most: Usage, price: Price) -> None:
        cost, tokens = self.cost, self.tokens
        if cost + price.of(most) > self._ceiling:
            raise LLMBudget(
                f"spent {cost:.6g} of the ceiling of {self._ceiling:.6g}; the next call may cost "
                f"up to {price.of(most):.6g} and was not made. Raise the ceiling to go on"
            )
        if tokens + _total(most) > self._token_ceiling:
            raise LLMBudget(
                f"used {tokens} of the ceiling of {self._token_ceiling} tokens; the next call may "
                f"take up to {_total(most)} and was not made. Raise the ceiling to go on"
            )

    def _fits(self, most: Usage, price: Price) -> bool:
        wanted = [(price, most), *((held.price, held.most) for held in self._open)]
        cost = self.cost + math.fsum(price.of(usage) for price, usage in wanted)
        tokens = self.tokens + sum(_total(usage) for _, usage in wanted)
        return cost <= self._ceiling and tokens <= self._token_ceiling

    def _book(self, reservation: Reservation, usage: Usage | None, *, sure: bool) -> None:
        self._open.discard(reservation)
        if usage is not None:
            self._tally(reservation.price).add(usage, sure=sure)
            if self._ledger is not None:
                price = reservation.price
                tokens = (usage.prompt_tokens, usage.completion_tokens)
                _append(self._ledger, (price.prompt, price.completion, *tokens, sure))
        self._settled.set()

    def _tally(self, price: Price) -> _Tally:
        return self._tallies.setdefault(price, _Tally())

    def state_dict(self) -> dict[str, Any]:
        """Return everything spent so far, as JSON values."""
        rows = [
            [price.prompt, price.completion, *_row(tally)]
            for price, tally in sorted(self._tallies.items())
        ]
        return {"tallies": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a stored state; a ledger that already knows of more is left as it is."""
        stored = {Price(row[0], row[1]): _Tally(*row[2:]) for row in state["tallies"]}
        if self._ledger is None:
            self._tallies = stored
        else:
            # The ledger was written to after the state was: the larger number is the true one.
            for price, tally in stored.items():
                known = self._tally(price)
                self._tallies[price] = max(known, tally, key=lambda either: either.calls)

    def metrics(self) -> dict[str, float]:
        """Return the figures of the run so far."""
        tallies = list(self._tallies.values())
        return {
            "llm/cost": self.cost,
            "llm/billed_calls": float(sum(tally.calls for tally in tallies)),
            "llm/unsure_calls": float(sum(tally.unsure_calls for tally in tallies)),
            "llm/prompt_tokens": float(sum(tally.prompt_tokens for tally in tallies)),
            "llm/completion_tokens": float(sum(tally.completion_tokens for tally in tallies)),
        }


def _append(path: Path, booking: Booking) -> None:
    # One short write to a file opened for appending: a killed process leaves all of it or nothing.
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(booking) + "\n")


def _read_ledger(path: Path) -> list[Booking]:
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        # A machine that lost power may leave half a line; the next booking must not join it.
        os.truncate(path, whole)
    try:
        return [json.loads(line) for line in data[:whole].splitlines()]
    except ValueError as error:
        raise RecordError(f"{path} is not a ledger of spending: {error}") from error


def _row(tally: _Tally) -> list[int]:
    return [tally.calls, tally.unsure_calls, tally.prompt_tokens, tally.completion_tokens]


def _total(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
