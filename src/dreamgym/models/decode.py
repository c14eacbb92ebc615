"""Cached decoding of many prompts at once, and scores of given answers.

Prompts of any length go together. Each row's answer depends on its own prompt, settings and seed,
not on the rows beside it. Equal prompts are read once; what begins alike is read once, too, also
across calls (see `prefix.py`). Plain, synchronous code: `as_llm.py` makes it an `LLM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dreamgym.errors import ConfigError
from dreamgym.models.cache import KVCache
from dreamgym.models.causal import CausalLM
from dreamgym.models.reading import Reader
from dreamgym.models.requirement import torch
from dreamgym.models.sampling import Draws, pick
from dreamgym.models.scoring import Choice, Scores, score_choices

SMALL = 30_000_000
FIRST_ROOM = 64
"""Tokens that a batch has room for at first; more is made when needed."""


@dataclass(frozen=True, slots=True)
class Query:
    """One prompt to go on from."""

    ids: tuple[int, ...]
    max_new: int
    """The most tokens to add."""
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: frozenset[int] = frozenset()
    """Tokens that end the answer; the one that did is its last."""
    ended: Callable[[Sequence[int]], bool] | None = None
    """Asked after each token whether the answer so far is complete."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was added to a prompt."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stopped: bool
    """It came to an end of its own; otherwise it was cut off at `max_new`."""


class _Growth:
    """An answer while it grows."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.stopped = False

    def add(self, token: int, logprob: float) -> bool:
        """Add a token, unless the answer is complete; return whether it goes on."""
        query = self.query
        if self.stopped or len(self.ids) >= query.max_new:
            return False
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.stopped = token in query.stop or (query.ended is not None and query.ended(self.ids))
        return not self.stopped and len(self.ids) < query.max_new

    def answer(self) -> Answer:
        """Return what was added."""
        return Answer(tuple(self.ids), tuple(self.logprobs), self.stopped)


class _Batch:
    """Answers that grow side by side, one row of a cache each. Rows beyond them are filler."""

    def __init__(self, growths: Sequence[_Growth], cache: KVCache, *, least_rows: int) -> None:
        self._least_rows = least_rows
        self._growths = list(growths)
        """The answer of each row."""
        self._places = list(range(len(growths)))
        """Its place among all answers."""
        self._temperature = torch.tensor([growth.query.temperature for growth in growths])
        self._top_p = torch.tensor([g.query.top_p for g in growths], dtype=torch.float64)
        self.cache = cache

    @property
    def real_rows(self) -> int:
        """How many rows are not filler."""
        return len(self._growths)

    def grow(self, logits: torch.Tensor, draws: Draws, step: int) -> torch.Tensor | None:
        """Add a token to every answer; return the tokens to read next, or None when all is done."""
        count = self.real_rows
        ids, logprobs = pick(
            logits[:count],
            temperature=self._temperature[:count],
            top_p=self._top_p[:count],
            uniform=draws.at(step, self._places),
        )
        grown = zip(self._growths, ids.tolist(), logprobs.tolist(), strict=True)
        going = [growth.add(token, logprob) for growth, token, logprob in grown]
        if not any(going):
            return None
        if not all(going):
            ids = ids[self._close_up(going)]
        self._make_room()
        tokens = ids.new_zeros(self.cache.rows, 1)
        tokens[: len(ids), 0] = ids
        return tokens

    def _close_up(self, going: list[bool]) -> list[int]:
        """Put the last rows that go on in the places of rows that are done; return who is where.

        Reading rows that are done would cost as much as reading others.
        """
        count = sum(going)
        order = list(range(count))
        holes = [row for row in order if not going[row]]
        movers = [row for row in range(count, len(going)) if going[row]]
        if holes:
            self.cache.move(movers, holes)
        for hole, mover in zip(holes, movers, strict=True):
            order[hole] = mover
        self._growths = [self._growths[row] for row in order]
        self._places = [self._places[row] for row in order]
        self._temperature, self._top_p = self._temperature[order], self._top_p[order]
        self.cache = self.cache.part(0, max(count, self._least_rows))
        return order

    def _make_room(self) -> None:
        longest = int(self.cache.lengths.max())
        if longest + 1 > self.cache.columns:
            rows = torch.arange(self.cache.rows)
            self.cache = self.cache.select(rows, columns=longest * 3 // 2 + FIRST_ROOM)


class Decoder:
    """Decodes with one model. Not for use by two threads at once."""

    def __init__(
        self,
        model: CausalLM,
        *,
        max_rows: int = 256,
        chunk_tokens: int = 4096,
        cache_mb: int = 1024,
        memory_mb: int = 256,
        steady: bool | None = None,
    ) -> None:
        """Set limits.

        Args:
            model: any model behind the small interface.
            max_rows: the most answers that grow side by side.
            chunk_tokens: prompts are read this many tokens at a time.
            cache_mb: for the keys and values of a batch; more questions are more batches.
            memory_mb: for what begins alike across calls; 0 remembers nothing.
            steady: fill small batches up to 16 rows, so that an answer is the same to the last bit
                whatever else is asked or was asked before (on the processors tried). Costs speed
                where fewer than 16 prompts come together; without it, last bits may differ. Left
                open, models of up to 30 million parameters are steady.
        """
        self._model = model
        self._max_rows = max_rows
        self._chunk_tokens = chunk_tokens
        self._cache_tokens = cache_mb * 2**20 // model.cache_shape.bytes_per_token
        if steady is None:
            steady = sum(weight.numel() for weight in model.parameters()) <= SMALL
        self._reader = Reader(
            model, chunk_tokens=chunk_tokens, memory_bytes=memory_mb * 2**20, steady=steady
        )

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that were computed so far, not remembered."""
        return self._reader.tokens

    def forget(self) -> None:
        """Drop what is remembered. Changed weights are noticed and need no call."""
        self._reader.memory.forget()

    def generate(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer all queries, in their order."""
        for query in queries:
            self._check(query.ids, query.max_new)
            if query.max_new < 1:
                raise ConfigError(f"max_new is {query.max_new}: an answer has at least one token")
        answers: list[Answer] = []
        with torch.inference_mode():
            self._reader.notice_change()
            sizes = [len(query.ids) + min(query.max_new, FIRST_ROOM) for query in queries]
            for start, stop in self._batches(sizes):
                answers += self._run(queries[start:stop])
        return answers

    def score(self, asked: Sequence[Choice]) -> list[Scores]:
        """Return the log-probability of every token of every candidate of each choice.

        A prompt is read once for all its candidates; these are read side by side.
        """
        for choice in asked:
            self._check(choice.ids, max(map(len, choice.candidates), default=0))
        found: list[Scores] = []
        with torch.inference_mode():
            self._reader.notice_change()
            sizes = [len(choice.ids) + sum(map(len, choice.candidates)) for choice in asked]
            for start, stop in self._batches(sizes):
                found += score_choices(
                    self._model, self._reader, asked[start:stop], chunk_tokens=self._chunk_tokens
                )
        return found

    def _check(self, ids: Sequence[int], more: int) -> None:
        if not ids:
            raise ConfigError("a prompt without tokens: there is nothing to go on from")
        if len(ids) + more > self._model.positions:
            raise ConfigError(
                f"{len(ids)} prompt tokens and {more} new ones are more than the "
                f"{self._model.positions} that the model reads"
            )

    def _batches(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Cut questions, in their order, into ranges that the cache has room for."""
        start = longest = 0
        for place, size in enumerate(sizes):
            longest = max(longest, size)
            rows = place - start + 1
            if rows > 1 and (rows > self._max_rows or rows * longest > self._cache_tokens):
                yield start, place
                start, longest = place, size
        if sizes:
            yield start, len(sizes)

    def _run(self, queries: Sequence[Query]) -> list[Answer]:
        """Read the prompts, then add a token to every row until all rows are done."""
        reading = self._reader.read([query.ids for query in queries], room=FIRST_ROOM)
        growths = [_Growth(queries[number]) for number in reading.order]
        batch = _Batch(growths, reading.cache, least_rows=self._reader.least_rows)
        draws = Draws([growth.query.seed for growth in growths])
        logits, step = reading.logits, 0
        while True:
            ids = batch.grow(logits, draws, step)
            step += 1
            if ids is None:
                break
            span = batch.cache.next_span(batch.real_rows)
            hidden = self._model.hidden(ids, cache=batch.cache, span=span)
            batch.cache.lengths[: batch.real_rows] += 1
            logits = self._model.logits(hidden[:, 0])
        answers = {n: g.answer() for n, g in zip(reading.order, growths, strict=True)}
        return [answers[number] for number in range(len(queries))]
