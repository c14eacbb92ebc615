"""Keys and values of tokens already read, for rows of different lengths.

A row's token at position p sits in column p: nothing is padded on the left, so a row's columns mean
the same whatever its neighbours are, and can be kept and put back (see `prefix.py`).
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dreamgym.models.company import whole_steps
from dreamgym.models.requirement import torch

WORTH_A_CALL = 12_000
"""Looks at filler, token by column, that cost more than a call of their own for rows of another
size. Looking is most of the work of decoding: short rows should not pay for a long one."""


TRUNK, FILLER = -2, -1
"""What stands for no continuation: tokens before all of them, and tokens that mean nothing."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a model keeps per token."""

    layers: int
    heads: int
    head_dim: int

    @property
    def bytes_per_token(self) -> int:
        """Memory that one token takes, in 32-bit floats."""
        return 8 * self.layers * self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Part:
    """Some neighbouring rows, how many columns they look at, and how many tokens do so at most."""

    start: int
    stop: int
    columns: int
    tokens: int = 1
    shift: int = 0
    """How much further down these rows stand in the cache than in the pass."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some neighbouring tokens of every row, and the only columns that any of them looks at."""

    start: int
    stop: int
    columns: tuple[slice, ...]
    mask: torch.Tensor | None
    """[rows, 1, tokens, columns]. None: the columns are the tokens, and each sees itself and those
    before it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where the tokens of one forward pass stand and what they see, for all layers alike."""

    positions: torch.Tensor
    """[rows, tokens]: the position of each token in its sequence."""
    mask: torch.Tensor | None
    """[rows, 1, tokens, columns]: 0 where a token may look, minus infinity elsewhere. None: each
    token of the pass sees itself and those before it."""
    slots: torch.Tensor | None = None
    """[rows * tokens]: where keys and values go, counted through the rows of the cache."""
    parts: tuple[Part, ...] | None = None
    """Neighbouring rows that need to look at equally many columns; rows in none of them are filler,
    and what they see does not matter. None: all rows look at all columns of the mask."""
    asked: torch.Tensor | None = None
    """[rows, some]: the tokens of each row whose hidden states are asked for, -1 where there are
    fewer. None: all of them."""
    real: torch.Tensor | None = None
    """Which tokens, counted through the rows, are not filler. None: nobody says."""
    pieces: tuple[Piece, ...] = ()
    """All tokens of the pass, where most of what they could look at is not for them to see: instead
    of a mask, and without a cache."""

    @property
    def whole_mask(self) -> torch.Tensor | None:
        """The mask, also where pieces stand for it."""
        if not self.pieces:
            return self.mask
        rows, tokens = self.positions.shape
        masks = [piece.mask for piece in self.pieces if piece.mask is not None]
        if not masks:
            return None
        whole = masks[0].new_full((rows, 1, tokens, tokens), -torch.inf)
        for piece in self.pieces:
            here = whole[:, :, piece.start : piece.stop]
            at = 0
            for columns in piece.columns:
                size = columns.stop - columns.start
                if piece.mask is None:
                    seen = torch.full((size, size), -torch.inf, device=whole.device).triu(1)
                else:
                    seen = piece.mask[..., at : at + size]
                here[..., columns] = seen
                at += size
        return whole


class KVCache:
    """Keys and values of a batch. `lengths` says how many tokens each row holds.

    Rows may be strewn over a larger store (`places`): only `quick.py` reads those.
    """

    def __init__(
        self, store: torch.Tensor, lengths: torch.Tensor, *, places: torch.Tensor | None = None
    ) -> None:
        """Wrap a tensor [layers, 2, rows, columns, heads, head_dim] and the rows' lengths.

        With `places`, row n of the batch is row `places[n]` of the tensor.
        """
        self.store = store
        self.lengths = lengths
        self.places = places

    @classmethod
    def empty(
        cls, shape: CacheShape, rows: int, *, columns: int, room: torch.Tensor | None = None
    ) -> KVCache:
        """Make room for `rows` rows of up to `columns` tokens, in `room` if that is enough."""
        size = (shape.layers, 2, rows, whole_steps(columns), shape.heads, shape.head_dim)
        count = math.prod(size)
        flat = zeros(count) if room is None or room.numel() < count else room[:count]
        return cls(flat.view(size), torch.zeros(rows, dtype=torch.long))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.lengths)

    @property
    def columns(self) -> int:
        """How many tokens a row can hold."""
        return self.store.shape[3]

    def part(self, start: int, stop: int) -> KVCache:
        """Return some neighbouring rows; writes to the part are writes to the whole."""
        if self.places is not None:
            places = self.places[start:stop]
            return KVCache(self.store, self.lengths[start:stop], places=places)
        return KVCache(self.store[:, :, start:stop], self.lengths[start:stop])

    def only(self, rows: list[int]) -> KVCache:
        """Return some rows, which must be neighbours where none are strewn; lengths are copied."""
        if self.places is None:
            part = self.part(rows[0], rows[-1] + 1)
            return KVCache(part.store, part.lengths.clone())
        return KVCache(self.store, self.lengths[rows], places=self.at[rows])

    @property
    def at(self) -> torch.Tensor:
        """[rows]: where in the store each row stands."""
        return torch.arange(self.rows) if self.places is None else self.places

    def select(self, rows: torch.Tensor, *, columns: int) -> KVCache:
        """Return a copy with these rows (some perhaps twice) and room for `columns` tokens."""
        used = min(self.columns, whole_steps(int(self.lengths[rows].max())))
        wide = max(used, whole_steps(columns))
        store = zeros(*self.store.shape[:2], len(rows), wide, *self.store.shape[4:])
        for layer in range(len(store)):
            for kind in (0, 1):
                source = self.store[layer, kind, :, :used]
                store[layer, kind, :, :used] = source.index_select(0, self.at[rows])
        return KVCache(store, self.lengths[rows])

    def move(self, sources: list[int], targets: list[int]) -> None:
        """Put some rows in the place of others, which are lost."""
        used = whole_steps(int(self.lengths[sources].max()))
        origin, place = torch.tensor(sources), torch.tensor(targets)
        for layer in self.store:
            for held in layer:
                held[:, :used].index_copy_(0, place, held[:, :used].index_select(0, origin))
        self.lengths[place] = self.lengths[origin]

    def copy(self, sources: list[int], *, to: int, ahead: int = 0) -> None:
        """Put copies of some rows behind one another, from row `to` on.

        With the keys and values of `ahead` tokens beyond the lengths. What a target holds already
        is taken to be the same.
        """
        origin, stop = torch.tensor(sources), to + len(sources)
        held = self.lengths[to:stop].tolist()
        used = [min(self.columns, n + ahead) for n in self.lengths[origin].tolist()]
        moves = list(
            zip(self.at[origin].tolist(), self.at[to:stop].tolist(), held, used, strict=True)
        )
        for layer in self.store.numpy():
            for kind in layer:
                for source, target, first, last in moves:
                    kind[target, first:last] = kind[source, first:last]
        self.lengths[to:stop] = self.lengths[origin]

    def span(self, tokens: int, counts: Sequence[int] | None = None) -> Span:
        """Say where the next `tokens` tokens of every row go: after those it holds.

        With `counts`, only so many tokens of each row are not filler; nor are rows beyond.
        """
        positions = self.lengths[:, None] + torch.arange(tokens)
        mask = None
        if self.places is None:
            hidden = torch.arange(self._columns_for(positions)) > positions[:, :, None]
            mask = additive(hidden)
        span = Span(positions, mask, self.slots(positions))
        if counts is None:
            return span
        wanted = torch.tensor([*counts, *(0 for _ in range(self.rows - len(counts)))])
        real = (torch.arange(tokens) < wanted[:, None]).flatten().nonzero()[:, 0]
        return replace(span, parts=self._parts(counts), real=real)

    def _parts(self, counts: Sequence[int]) -> tuple[Part, ...]:
        parts: list[Part] = []
        begin = useful = 0
        shifts = (self.at - torch.arange(self.rows)).tolist()
        for row, (length, tokens) in enumerate(zip(self.lengths.tolist(), counts, strict=False)):
            columns, before = whole_steps(length + tokens), parts[-1] if parts else None
            useful += tokens * columns
            if before and before.shift == shifts[row]:
                most = max(before.columns, columns), max(before.tokens, tokens)
                if (row + 1 - begin) * most[0] * most[1] - useful <= WORTH_A_CALL:
                    parts[-1] = Part(begin, row + 1, *most, before.shift)
                    continue
            begin, useful = row, tokens * columns
            parts.append(Part(row, row + 1, columns, tokens, shifts[row]))
        return tuple(parts)

    def branches(self, offsets: torch.Tensor, branch: torch.Tensor) -> Span:
        """Say where tokens of several continuations of each row go, side by side.

        Args:
            offsets: [rows, tokens], how far a token is from the last one that the row holds.
            branch: [rows, tokens], which continuation it belongs to; `TRUNK` for tokens that all
                continuations share, which stand first, and -1 for filler, which stands last.
        """
        tokens = offsets.shape[1]
        order = torch.arange(tokens)
        places = self.lengths[:, None] + order
        columns = self._columns_for(places)  # of strewn rows, filler may stand further right
        past = torch.arange(columns) < self.lengths[:, None]
        own = (branch[:, :, None] == branch[:, None, :]) | (branch == TRUNK)[:, None, :]
        own &= order[:, None] >= order
        seen = past[:, None, :].repeat(1, tokens, 1)
        seen.scatter_(2, places[:, None, :].expand_as(own), own)
        span = Span(self.lengths[:, None] + offsets, additive(~seen), self.slots(places))
        real = branch != FILLER
        parts = self._parts(real.sum(1).tolist())
        return replace(span, parts=parts, real=real.flatten().nonzero()[:, 0])

    def slots(self, columns: torch.Tensor) -> torch.Tensor:
        """Return columns [rows, tokens] as an index into the rows laid end to end."""
        return (columns + self.at[:, None] * self.columns).flatten()

    def put(
        self, layer: int, span: Span, *, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store a layer's new keys and values [rows, tokens, heads, head_dim].

        Returns all keys and values that attention must look at, [rows, heads, columns, head_dim].
        """
        if span.slots is None or span.mask is None:
            raise ValueError("a span of tokens without a place in the cache")
        held = self.store[layer]
        flat = held.flatten(1, 2)
        flat[0].index_copy_(0, span.slots, keys.flatten(0, 1))
        flat[1].index_copy_(0, span.slots, values.flatten(0, 1))
        seen = held[:, :, : span.mask.shape[-1]].transpose(2, 3)
        return seen[0], seen[1]

    def _columns_for(self, places: torch.Tensor) -> int:
        longest = int(places.max()) + 1
        if longest > self.columns and self.places is None:
            raise ValueError(f"the cache holds {self.columns} tokens per row, {longest} are needed")
        return whole_steps(longest)


def zeros(*size: int) -> torch.Tensor:
    """Return zeros that take memory only where they are written to; torch's own fill it at once.

    In small pages: numpy asks for huge ones, and rows with room between them would take all of it,
    at ten times the price. Not rubbish: a masked column still enters a product, and rubbish may be
    NaN.
    """
    count = math.prod(size)
    if not count:
        return torch.zeros(size)
    pages = mmap.mmap(-1, 4 * count)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.from_numpy(np.frombuffer(pages, dtype=np.float32).reshape(size))


def additive(hidden: torch.Tensor) -> torch.Tensor:
    """Return a mask [rows, tokens, columns] of what is hidden as one to add to scores."""
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))[:, None]
