"""Cached decoding of many prompts at once, and scores of given answers.

Prompts of any length go together. Each row's answer depends on its own prompt, settings and seed,
not on the rows beside it. Equal prompts are read once; what begins alike is read once, too, also
across calls (see `prefix.py`). Small models check several guessed tokens in one pass (`drafts.py`).
Plain, synchronous code: `as_llm.py` makes it an `LLM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dreamgym.errors import ConfigError
from dreamgym.models.cache import KVCache, Span
from dreamgym.models.causal import CachedLM, CausalLM
from dreamgym.models.company import STEADY, filled_up
from dreamgym.models.drafts import Drafts
from dreamgym.models.llama import Llama
from dreamgym.models.quick import QuickLlama
from dreamgym.models.reading import Reader, within
from dreamgym.models.requirement import torch
from dreamgym.models.sampling import Draws, pick
from dreamgym.models.scoring import Choice, Scores, score_choices

SMALL = 30_000_000
FIRST_ROOM = 64
"""Tokens that a batch has room for at first; more is made when needed."""
LONGEST_GUESS = 24
"""Tokens that a row reads ahead at most."""


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
        self.whole = list(query.ids)
        """Prompt and answer."""
        self.held = len(query.ids)
        """How many of these tokens the row that was read holds."""

    @property
    def room(self) -> int:
        """How many tokens may still be added."""
        return self.query.max_new - len(self.ids)

    def add(self, token: int, logprob: float) -> bool:
        """Add a token; return whether the answer goes on."""
        query = self.query
        self.ids.append(token)
        self.whole.append(token)
        self.logprobs.append(logprob)
        self.stopped = token in query.stop or (query.ended is not None and query.ended(self.ids))
        return not self.stopped and len(self.ids) < query.max_new

    def answer(self) -> Answer:
        """Return what was added."""
        return Answer(tuple(self.ids), tuple(self.logprobs), self.stopped)


class _Batch:
    """Answers that grow side by side, one row of a cache each. Rows beyond them are filler."""

    def __init__(
        self, growths: Sequence[_Growth], cache: KVCache, *, least_rows: int, drafts: Drafts | None
    ) -> None:
        self._least_rows = least_rows
        self._drafts = drafts
        self._growths = list(growths)
        """The answer of each row."""
        self._places = list(range(len(growths)))
        """Its place among all answers."""
        self._greedy = all(growth.query.temperature <= 0 for growth in growths)
        self._temperature = torch.tensor([growth.query.temperature for growth in growths])
        self._top_p = torch.tensor([g.query.top_p for g in growths], dtype=torch.float64)
        self.cache = cache

    def grow(self, logits: torch.Tensor, draws: Draws, *, guesses: Sequence[Sequence[int]]) -> bool:
        """Add tokens to every answer, as far as guesses are right, and one; say if any goes on.

        Args:
            logits: [rows, tokens, vocab], what follows the row's last token and each guess.
            draws: for answers that are drawn.
            guesses: what each row has read ahead.
        """
        picked = self._pick(logits, draws, guesses)
        going = [
            self._add(growth, guess, picked)
            for growth, guess in zip(self._growths, guesses, strict=True)
        ]
        lengths = [len(growth.whole) - 1 for growth in self._growths]
        self.cache.lengths[: len(going)] = torch.tensor(lengths)
        if self.cache.places is not None:
            for growth, length in zip(self._growths, lengths, strict=True):
                growth.held = length
        if any(going) and not all(going):
            self._close_up(going)
        return any(going)

    def _pick(
        self, logits: torch.Tensor, draws: Draws, guesses: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, float]]:
        """Choose a token for every place that has scores, row by row."""
        counts = [1 + len(guess) for guess in guesses]
        steps = [
            len(growth.ids) + ahead
            for growth, count in zip(self._growths, counts, strict=True)
            for ahead in range(count)
        ]
        row = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        ahead = torch.cat([torch.arange(count) for count in counts])
        places = [place for place, n in zip(self._places, counts, strict=True) for _ in range(n)]
        ids, logprobs = pick(
            logits[row, ahead],
            temperature=self._temperature[row],
            top_p=self._top_p[row],
            uniform=torch.zeros(0) if self._greedy else draws.at(steps, places),
        )
        return zip(ids.tolist(), logprobs.tolist(), strict=True)

    def _add(
        self, growth: _Growth, guess: Sequence[int], picked: Iterator[tuple[int, float]]
    ) -> bool:
        """Add the tokens picked after right guesses; return whether the answer goes on."""
        start, right, going = len(growth.whole), True, True
        for guessed, (token, logprob) in zip([*guess, None], picked, strict=False):
            if right and going:
                going = growth.add(token, logprob)
                right = token == guessed
        if self._drafts is not None:
            self._drafts.learn(growth.whole, start)
        return going

    def next_pass(self, positions: int) -> tuple[torch.Tensor, Span, list[list[int]]]:
        """Return the tokens to read next, [rows, tokens], where they go, and which are guesses."""
        guesses = [guess_for(growth, self._drafts) for growth in self._growths]
        width = 1 + max(map(len, guesses))
        if self._drafts is not None:
            width = filled_up(width)
        self._make_room(width)
        tokens = [
            [growth.whole[-1], *guess, *((0,) * (width - 1 - len(guess)))]
            for growth, guess in zip(self._growths, guesses, strict=True)
        ]
        tokens += [[0] * width for _ in range(self.cache.rows - len(tokens))]
        span = self.cache.span(width, [1 + len(guess) for guess in guesses])
        return torch.tensor(tokens), within(span, positions), guesses

    def _close_up(self, going: list[bool]) -> None:
        """Put the last rows that go on in the places of rows that are done.

        Reading rows that are done would cost as much as reading others.
        """
        count = sum(going)
        order = list(range(count))
        if self.cache.places is not None:
            order = [row for row, goes_on in enumerate(going) if goes_on]
            self.cache = self.cache.only(order)
        else:
            holes = [row for row in order if not going[row]]
            movers = [row for row in range(count, len(going)) if going[row]]
            if holes:
                self.cache.move(movers, holes)
            for hole, mover in zip(holes, movers, strict=True):
                order[hole] = mover
            self.cache = self.cache.part(0, max(count, self._least_rows))
        self._growths = [self._growths[row] for row in order]
        self._places = [self._places[row] for row in order]
        self._temperature, self._top_p = self._temperature[order], self._top_p[order]

    def _make_room(self, tokens: int) -> None:
        longest = int(self.cache.lengths.max())
        if longest + tokens > self.cache.columns:
            rows = torch.arange(self.cache.rows)
            self.cache = self.cache.select(rows, columns=longest * 3 // 2 + max(tokens, FIRST_ROOM))


def guess_for(growth: _Growth, drafts: Drafts | None) -> list[int]:
    """Guess how an answer goes on, short of its last token, which nothing needs to follow."""
    if drafts is None:
        return []
    return drafts.guess(growth.whole, most=min(LONGEST_GUESS, growth.room - 1))


class Decoder:
    """Decodes with one model. Not for use by two threads at once."""

    def __init__(
        self,
        model: CausalLM,
        *,
        max_rows: int = 256,
        chunk_tokens: int = 1024,
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
            steady: an answer is the same to the last bit whatever else is asked or was asked before
                (on the processors tried), and guesses are read ahead. Our own small models go
                through `quick.py` for that; for others, batches are filled up to 16 rows. Without
                it, last bits may differ. Left open, models of up to 30 million parameters are
                steady.
        """
        if steady is None:
            steady = sum(weight.numel() for weight in model.parameters()) <= SMALL
        quick = QuickLlama(model) if steady and isinstance(model, Llama) else None
        self._model: CachedLM = quick or model
        self._drafts = Drafts() if steady else None
        self.passes = 0
        """How often tokens were picked so far, for a whole batch each time."""
        self._max_rows = max_rows
        self._chunk_tokens = chunk_tokens
        self._cache_tokens = cache_mb * 2**20 // model.cache_shape.bytes_per_token
        self._reader = Reader(
            self._model,
            chunk_tokens=chunk_tokens,
            memory_bytes=memory_mb * 2**20,
            least_rows=filled_up(STEADY) if steady and quick is None else 1,
            on_change=None if quick is None else quick.take_weights,
            hold=quick is not None and quick.steady,
        )

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that were computed so far, not remembered."""
        return self._reader.tokens

    def forget(self) -> None:
        """Drop what is remembered. Changed weights are noticed and need no call."""
        self._reader.forget()
        if self._drafts is not None:
            self._drafts = Drafts()

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
        """Read the prompts, then add tokens to every row until all rows are done."""
        growths = [_Growth(query) for query in queries]
        tails = {g.query.ids: tuple(guess_for(g, self._drafts)) for g in growths}
        room = min(FIRST_ROOM, max(query.max_new for query in queries))
        reading = self._reader.read([query.ids for query in queries], room=room, drafts=tails)
        rows = [growths[number] for number in reading.order]
        batch = _Batch(rows, reading.cache, least_rows=self._reader.least_rows, drafts=self._drafts)
        draws = Draws([growth.query.seed for growth in rows])
        guesses: list[list[int]] = [list(tails[growth.query.ids]) for growth in rows]
        logits = reading.logits
        self.passes += 1
        while batch.grow(logits, draws, guesses=guesses):
            ids, span, guesses = batch.next_pass(self._model.positions)
            hidden = self._model.hidden(ids, cache=batch.cache, span=span)
            logits = self._model.logits(hidden)
            self.passes += 1
        if self._reader.held is not None:
            self._reader.held.hold(reading.cache, [tuple(g.whole[: g.held]) for g in rows])
        return [growth.answer() for growth in growths]
