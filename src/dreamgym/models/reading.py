"""Reading prompts: every token once, however many prompts begin with it.

Equal prompts are one row. Beginnings that several prompts share are read first and remembered, and
so is everything read before under the same weights (see `prefix.py`). What then is missing is read
in chunks of rows that lack about equally much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dreamgym.models.cache import STEADY, KVCache, Span
from dreamgym.models.causal import CachedLM
from dreamgym.models.prefix import BLOCK, PrefixMemory
from dreamgym.models.requirement import torch

WORTH_SHARING = 64
"""Tokens to be saved for a reading of its own to pay."""
WORTH_A_PASS = 96
"""Tokens of filler that cost more than another pass through the model."""

Ids = tuple[int, ...]
Key = tuple[int, Ids]
"""A block of tokens under the block before it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Prompts that were read."""

    order: list[int]
    """Which prompt stands in each row; rows beyond are filler."""
    cache: KVCache
    logits: torch.Tensor
    """[prompts, 1 + longest draft, vocab], row by row: scores of what follows a prompt, and of what
    follows each token of its draft."""


class Reader:
    """Reads prompts with one model."""

    def __init__(
        self,
        model: CachedLM,
        *,
        chunk_tokens: int,
        memory_bytes: int,
        least_rows: int = 1,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        """Set limits.

        Args:
            model: who reads.
            chunk_tokens: as many go through it at once.
            memory_bytes: for what begins alike across calls.
            least_rows: smaller batches are filled up with rows that mean nothing.
            on_change: called when the weights are found changed.
        """
        self._model = model
        self._chunk_tokens = chunk_tokens
        self._least_rows = least_rows
        self._on_change = on_change
        self._weights: tuple[int, ...] = ()
        self.memory = PrefixMemory(model.cache_shape, capacity_bytes=memory_bytes)
        self._room: torch.Tensor | None = None
        self.tokens = 0
        """Prompt tokens that were computed, not remembered."""

    @property
    def least_rows(self) -> int:
        """Caches are made with at least so many rows."""
        return self._least_rows

    def notice_change(self) -> None:
        """Forget everything if the weights are not those that it was read with."""
        weights = list(self._model.parameters())
        state = tuple(number for w in weights for number in (id(w), w._version))
        if state != self._weights:
            self.memory.forget()
            self._room = None
            self._weights = state
            if self._on_change is not None:
                self._on_change()

    def read(
        self, prompts: Sequence[Ids], *, room: int, drafts: Mapping[Ids, Ids] | None = None
    ) -> Reading:
        """Read prompts, and what may follow some of them. `room` tokens may be added to each."""
        unique = list(dict.fromkeys(prompts))
        self._read_shared(unique)
        tails = drafts or {}
        known = {ids: self.memory.known(ids[:-1]) for ids in unique}
        lacking = {ids: len(ids) + len(tails.get(ids, ())) - known[ids] for ids in unique}
        # Falling: when short answers leave their rows to others, long rows stay among long ones.
        unique.sort(key=lambda ids: -lacking[ids])
        missing = [lacking[ids] for ids in unique]
        parts = list(chunks(missing, budget=self._chunk_tokens))
        longest = max(map(len, tails.values()), default=0)
        columns = max(map(len, unique)) + max(room, longest, STEADY)
        # A row is filled up as far as the row of its part that lacks most, wherever it begins.
        filled = [known[ids] + self._width(missing[a]) for a, b in parts for ids in unique[a:b]]
        rows = max(len(prompts), self._least_rows)
        cache = self._empty_cache(rows, columns=max(columns, *filled))
        self.memory.recall(unique, cache)
        self.tokens += sum(len(ids) - known[ids] for ids in unique)
        whole = [(ids, tails.get(ids, ())) for ids in unique]
        logits = [self._extend(cache.part(a, b), whole[a:b], asked=1 + longest) for a, b in parts]
        self.memory.keep(unique, cache)
        reading = Reading(list(range(len(unique))), cache, torch.cat(logits))
        return self._spread(reading, unique, prompts)

    def _spread(self, reading: Reading, unique: list[Ids], prompts: Sequence[Ids]) -> Reading:
        """Give every prompt a row of its own: those that were asked before get a copy."""
        row_of = {ids: row for row, ids in enumerate(unique)}
        first = [-1] * len(unique)
        again: list[int] = []
        for number, ids in enumerate(prompts):
            if first[row_of[ids]] < 0:
                first[row_of[ids]] = number
            else:
                again.append(number)
        if not again:
            return replace(reading, order=first)
        copied = [row_of[prompts[number]] for number in again]
        ahead = reading.logits.shape[1] - 1
        reading.cache.copy(copied, to=len(unique), ahead=ahead)
        rows = [*range(len(unique)), *copied]
        return Reading([*first, *again], reading.cache, reading.logits[rows])

    def _empty_cache(self, rows: int, *, columns: int) -> KVCache:
        """Return a cache in the room of the one before, which nobody needs any more.

        Fresh memory costs more than a pass of the model. What is left over there is never looked
        at; it may not be NaN, so room is given up when the weights change.
        """
        cache = KVCache.empty(self._model.cache_shape, rows, columns=columns, room=self._room)
        if self._room is None or cache.store.numel() > self._room.numel():
            self._room = cache.store.flatten()
        return cache

    def _width(self, tokens: int) -> int:
        """Return how many tokens are read at once where a row lacks so many."""
        return -(-tokens // self._least_rows) * self._least_rows

    def _read_shared(self, prompts: Sequence[Ids]) -> None:
        """Read and remember beginnings that several of the prompts share."""
        worth = [
            ids
            for ids, count in shared_beginnings(prompts).items()
            if (count - 1) * (len(ids) - self.memory.known(ids)) >= WORTH_SHARING
            and len(ids) <= self.memory.capacity_tokens
        ]
        if worth:
            self.read(worth, room=0)

    def _extend(
        self, cache: KVCache, prompts: Sequence[tuple[Ids, Ids]], *, asked: int
    ) -> torch.Tensor:
        """Read what the cache's rows lack of prompts and drafts; return the scores asked for."""
        held = cache.lengths.tolist()
        missing = [(*ids[start:], *tail) for (ids, tail), start in zip(prompts, held, strict=True)]
        rows, width = len(missing), self._width(max(map(len, missing)))
        ids = torch.tensor([[*tokens, *((0,) * (width - len(tokens)))] for tokens in missing])
        first = torch.tensor([len(ids) - 1 for ids, _ in prompts]) - cache.lengths
        last = torch.tensor([len(tokens) - 1 for tokens in missing])
        # Where a draft is shorter than others, its last token is asked for again.
        places = torch.minimum(first[:, None] + torch.arange(asked), last[:, None])
        span = replace(cache.span(width, [len(tokens) for tokens in missing]), asked=places)
        hidden = self._model.hidden(ids, cache=cache, span=within(span, self._model.positions))
        cache.lengths += first + 1
        flat = hidden.reshape(rows * asked, -1)
        filler = flat.new_zeros(max(0, self._least_rows - len(flat)), flat.shape[1])
        scores = self._model.logits(torch.cat((flat, filler)))[: len(flat)]
        return scores.view(rows, asked, -1)


def within(span: Span, positions: int) -> Span:
    """Let filler on the right stand within so many positions; nobody looks at it."""
    return replace(span, positions=span.positions.clamp_max(positions - 1))


def chunks(lengths: Sequence[int], *, budget: int) -> Iterator[tuple[int, int]]:
    """Cut rows of falling length into ranges of padded size within a budget, with little filler."""
    start = filler = 0
    for row, length in enumerate(lengths):
        filler += lengths[start] - length
        if row > start and (filler > WORTH_A_PASS or (row + 1 - start) * lengths[start] > budget):
            yield start, row
            start, filler = row, 0
    yield start, len(lengths)


def shared_beginnings(prompts: Sequence[Ids]) -> dict[Ids, int]:
    """Return the longest beginnings, in whole blocks, that prompts share, and how many do.

    A beginning of a longer shared beginning is not listed by itself.
    """
    counts: Counter[Key] = Counter()
    names: dict[Key, int] = {}
    trails: list[list[Key]] = []
    for ids in prompts:
        parent, trail = 0, []
        for start in range(0, len(ids) - BLOCK + 1, BLOCK):
            key = (parent, ids[start : start + BLOCK])
            parent = names.setdefault(key, len(names) + 1)
            counts[key] += 1
            trail.append(key)
        trails.append(trail)
    found: dict[Key, Ids] = {}
    inner: set[Key] = set()
    for ids, trail in zip(prompts, trails, strict=True):
        depth = sum(1 for key in trail if counts[key] > 1)
        if depth:
            found[trail[depth - 1]] = ids[: depth * BLOCK]
            inner.update(trail[: depth - 1])
    return {ids: counts[key] for key, ids in found.items() if key not in inner}
