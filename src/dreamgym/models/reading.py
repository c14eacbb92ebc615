"""Reading prompts: every token once, however many prompts begin with it.

Equal prompts are one row. Beginnings that several prompts share are read first and remembered, and
so is everything read before under the same weights (see `prefix.py`). What then is missing is read
in chunks of rows that lack about equally much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dreamgym.models.cache import KVCache, Span
from dreamgym.models.causal import CachedLM
from dreamgym.models.company import STEADY
from dreamgym.models.held import HeldRows
from dreamgym.models.prefix import BLOCK, PrefixMemory
from dreamgym.models.requirement import torch

WORTH_SHARING = 64
"""Tokens to be saved for a reading of its own to pay."""
WORTH_A_PASS = 96
"""Tokens of filler that cost more than another pass through the model."""

WORTH_A_HELD_PASS = 512
"""The same where filler is left out of everything but attention."""

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
        hold: bool = False,
    ) -> None:
        """Set limits.

        Args:
            model: who reads.
            chunk_tokens: as many go through it at once.
            memory_bytes: for what begins alike across calls.
            least_rows: smaller batches are filled up with rows that mean nothing.
            on_change: called when the weights are found changed.
            hold: rows stay where they are between calls. For models that read strewn rows, and
                whose keys and values do not depend on how a token was read.
        """
        self._model = model
        self._chunk_tokens = chunk_tokens
        self._least_rows = least_rows
        self._on_change = on_change
        self._weights: tuple[int, ...] = ()
        self.held = HeldRows(model.cache_shape) if hold else None
        """Rows that stay between calls; who reads says in the end what they hold."""
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
            self.forget()
            self._weights = state
            if self._on_change is not None:
                self._on_change()

    def forget(self) -> None:
        """Let go of all that is remembered."""
        self.memory.forget()
        self._room = None
        if self.held is not None:
            self.held.forget()

    def read(
        self, prompts: Sequence[Ids], *, room: int, drafts: Mapping[Ids, Ids] | None = None
    ) -> Reading:
        """Read prompts, and what may follow some of them. `room` tokens may be added to each."""
        unique = list(dict.fromkeys(prompts))
        self.read_shared(unique)
        tails = {ids: (drafts or {}).get(ids, ()) for ids in unique}
        longest = max(map(len, tails.values()))
        columns = max(map(len, unique)) + max(room, longest, STEADY)
        again = _asked_before(prompts)
        if self.held is None:
            unique, cache = self._new_rows(unique, tails, columns=columns, more=len(again))
        else:
            more = [prompts[number] for number in again]
            unique, cache = self.held_rows(unique, more, columns=columns)
        held = cache.lengths.tolist()
        lacking = [len(ids) + len(tails[ids]) - n for ids, n in zip(unique, held, strict=False)]
        order = sorted(range(len(unique)), key=lambda row: -lacking[row])
        scores = torch.empty(0)
        for start, stop in self.chunks([lacking[row] for row in order]):
            rows = sorted(order[start:stop])
            whole = [(unique[row], tails[unique[row]]) for row in rows]
            some = self._extend(cache, rows, whole, asked=1 + longest)
            if not len(scores):
                scores = some.new_empty(len(unique), *some.shape[1:])
            scores[rows] = some
        self.tokens += sum(map(len, unique)) - sum(held[: len(unique)])
        self.memory.keep(unique, cache)
        return _spread(cache, scores, unique, prompts, again)

    def _new_rows(
        self, unique: list[Ids], tails: Mapping[Ids, Ids], *, columns: int, more: int
    ) -> tuple[list[Ids], KVCache]:
        """Return prompts in the order of their rows, and these with what is remembered."""
        known = {ids: self.memory.known(ids[:-1]) for ids in unique}
        lacking = {ids: len(ids) + len(tails[ids]) - known[ids] for ids in unique}
        # Falling: when short answers leave their rows to others, long rows stay among long ones.
        unique = sorted(unique, key=lambda ids: -lacking[ids])
        parts = self.chunks([lacking[ids] for ids in unique])
        # A row is filled up as far as the row of its part that lacks most, wherever it begins.
        filled = [
            known[ids] + self._width(lacking[unique[a]]) for a, b in parts for ids in unique[a:b]
        ]
        rows = max(len(unique) + more, self._least_rows)
        cache = self._empty_cache(rows, columns=max(columns, *filled))
        self.memory.recall(unique, cache)
        return unique, cache

    def held_rows(
        self, unique: list[Ids], more: Sequence[Ids] = (), *, columns: int
    ) -> tuple[list[Ids], KVCache]:
        """Return the same with what rows hold from before; rows for `more` prompts follow."""
        if self.held is None:
            raise ValueError("this reader holds no rows between calls")
        cache = self.held.take([*unique, *more], columns=columns)
        # As they stand in the store: what is side by side can be looked at in one go.
        order = torch.argsort(cache.at[: len(unique)]).tolist()
        cache = cache.only([*order, *range(len(unique), cache.rows)])
        unique = [unique[row] for row in order]
        self.memory.recall(unique, cache)
        return unique, cache

    def finish(self, prompts: Sequence[Ids], cache: KVCache, *, read: int) -> None:
        """Remember prompts that the rows of `held_rows` now hold; so many tokens were read."""
        self.tokens += read
        self.memory.keep(prompts, cache)
        if self.held is not None:
            self.held.hold(cache, prompts)

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

    def chunks(self, lacking: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Cut rows that lack less and less into those that are read together."""
        filler = WORTH_A_PASS if self.held is None else WORTH_A_HELD_PASS
        return chunks(lacking, budget=self._chunk_tokens, worth=filler)

    def read_shared(self, prompts: Sequence[Ids]) -> None:
        """Read and remember beginnings that several of the prompts share."""
        held = self.held
        new = prompts if held is None else [ids for ids in prompts if held.find(ids) is None]
        worth = [
            ids
            for ids, count in shared_beginnings(new).items()
            if (count - 1) * (len(ids) - self.memory.known(ids)) >= WORTH_SHARING
            and len(ids) <= self.memory.capacity_tokens
        ]
        if worth:
            reading = self.read(worth, room=0)
            if held is not None:
                held.hold(reading.cache, [worth[number] for number in reading.order])

    def _extend(
        self, whole: KVCache, rows: list[int], prompts: Sequence[tuple[Ids, Ids]], *, asked: int
    ) -> torch.Tensor:
        """Read what some rows lack of prompts and drafts; return the scores asked for."""
        cache = whole.only(rows)
        held = cache.lengths.tolist()
        missing = [(*ids[start:], *tail) for (ids, tail), start in zip(prompts, held, strict=True)]
        width = self._width(max(map(len, missing)))
        ids = torch.tensor([[*tokens, *((0,) * (width - len(tokens)))] for tokens in missing])
        first = torch.tensor([len(ids) - 1 for ids, _ in prompts]) - cache.lengths
        last = torch.tensor([len(tokens) - 1 for tokens in missing])
        places = first[:, None] + torch.arange(asked)
        places = places.masked_fill(places > last[:, None], -1)
        span = replace(cache.span(width, [len(tokens) for tokens in missing]), asked=places)
        hidden = self._model.hidden(ids, cache=cache, span=within(span, self._model.positions))
        whole.lengths[rows] = cache.lengths + first + 1
        flat = hidden.reshape(len(rows) * asked, -1)
        filler = flat.new_zeros(max(0, self._least_rows - len(flat)), flat.shape[1])
        scores = self._model.logits(torch.cat((flat, filler)))[: len(flat)]
        return scores.view(len(rows), asked, -1)


def _asked_before(prompts: Sequence[Ids]) -> list[int]:
    """Return the numbers of prompts that are equal to an earlier one."""
    seen: set[Ids] = set()
    again = []
    for number, ids in enumerate(prompts):
        if ids in seen:
            again.append(number)
        seen.add(ids)
    return again


def _spread(
    cache: KVCache,
    scores: torch.Tensor,
    unique: list[Ids],
    prompts: Sequence[Ids],
    again: list[int],
) -> Reading:
    """Give every prompt a row of its own: those that were asked before get a copy."""
    numbers: dict[Ids, int] = {}
    for number, ids in enumerate(prompts):
        numbers.setdefault(ids, number)
    order = [numbers[ids] for ids in unique]
    if not again:
        return Reading(order, cache, scores)
    row_of = {ids: row for row, ids in enumerate(unique)}
    copied = [row_of[prompts[number]] for number in again]
    cache.copy(copied, to=len(unique), ahead=scores.shape[1] - 1)
    order, scores = [*order, *again], scores[[*range(len(unique)), *copied]]
    if cache.places is None:
        return Reading(order, cache, scores)
    rows = torch.argsort(cache.places).tolist()
    return Reading([order[row] for row in rows], cache.only(rows), scores[rows])


def within(span: Span, positions: int) -> Span:
    """Let filler on the right stand within so many positions; nobody looks at it."""
    return replace(span, positions=span.positions.clamp_max(positions - 1))


def chunks(
    lengths: Sequence[int], *, budget: int, worth: int = WORTH_A_PASS
) -> Iterator[tuple[int, int]]:
    """Cut rows of falling length into ranges of padded size within a budget, with little filler."""
    start = filler = 0
    for row, length in enumerate(lengths):
        filler += lengths[start] - length
        if row > start and (filler > worth or (row + 1 - start) * lengths[start] > budget):
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
