"""Keys and values of tokens already read, for rows of different lengths.

A row's token at position p sits in column p: nothing is padded on the left, so a row's columns mean
the same whatever its neighbours are, and can be kept and put back (see `prefix.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.models.requirement import torch

COLUMN_STEP = 32
"""Attention looks at whole steps of columns. On a processor, sums then run in the same order for a
row whatever the longest row beside it is: answers do not change with the company."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a model keeps per token."""

    layers: int
    heads: int
    head_dim: int

    @property
    def floats_per_token(self) -> int:
        """Numbers kept for one token."""
        return 2 * self.layers * self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Span:
    """Where the tokens of one forward pass go, worked out once for all layers."""

    positions: torch.Tensor
    """[rows, tokens]: the position, which is the column, of each token."""
    slots: torch.Tensor
    """[rows * tokens]: the same, as an index into the rows laid end to end."""
    columns: int
    """How many columns attention must look at."""
    mask: torch.Tensor
    """[rows, 1, tokens, columns]: 0 where a token may look, minus infinity elsewhere."""


class KVCache:
    """Keys and values of a batch. `lengths` says how many tokens each row holds."""

    def __init__(self, store: torch.Tensor, lengths: torch.Tensor) -> None:
        """Wrap a tensor [layers, 2, rows, columns, heads, head_dim] and the rows' lengths."""
        self.store = store
        self.lengths = lengths

    @classmethod
    def empty(
        cls, shape: CacheShape, rows: int, *, columns: int, dtype: torch.dtype = torch.float32
    ) -> KVCache:
        """Make room for `rows` rows of up to `columns` tokens."""
        wide = -(-columns // COLUMN_STEP) * COLUMN_STEP
        # Zeros, not empty: a masked column still enters a product, and rubbish may be NaN.
        store = torch.zeros(
            (shape.layers, 2, rows, wide, shape.heads, shape.head_dim), dtype=dtype
        )
        return cls(store, torch.zeros(rows, dtype=torch.long))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.store.shape[2]

    @property
    def columns(self) -> int:
        """How many tokens a row can hold."""
        return self.store.shape[3]

    def part(self, start: int, stop: int) -> KVCache:
        """Return some neighbouring rows; writes to the part are writes to the whole."""
        return KVCache(self.store[:, :, start:stop], self.lengths[start:stop])

    def select(self, rows: torch.Tensor) -> KVCache:
        """Return a copy that holds only these rows (or some of them twice)."""
        used = self._rounded(int(self.lengths[rows].max())) if len(rows) else 0
        kept = self.store.new_zeros((*self.store.shape[:2], len(rows), *self.store.shape[3:]))
        torch.index_select(self.store[:, :, :, :used], 2, rows, out=None)
        kept[:, :, :, :used] = self.store[:, :, rows, :used]
        return KVCache(kept, self.lengths[rows].clone())

    def span(self, tokens: int) -> Span:
        """Say where the next `tokens` tokens of every row go."""
        positions = self.lengths[:, None] + torch.arange(tokens)
        longest = int(positions[:, -1].max()) + 1
        if longest > self.columns:
            raise ValueError(f"the cache holds {self.columns} tokens per row, {longest} are needed")
        first = torch.arange(self.rows) * self.columns
        columns = self._rounded(longest)
        hidden = torch.arange(columns) > positions[:, :, None]
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
        return Span(positions, (positions + first[:, None]).flatten(), columns, mask[:, None])

    def put(
        self, layer: int, span: Span, *, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store a layer's new keys and values [rows, tokens, heads, head_dim].

        Returns all keys and values that attention must look at, [rows, heads, columns, head_dim].
        """
        held = self.store[layer]
        shape = (self.rows * self.columns, *self.store.shape[4:])
        for kind, new in ((0, keys), (1, values)):
            target = held[kind]
            if target.is_contiguous():
                target.view(shape).index_copy_(0, span.slots, new.flatten(0, 1))
            else:
                rows = torch.arange(self.rows)[:, None]
                target[rows, span.positions] = new
        seen = held[:, :, : span.columns].transpose(2, 3)
        return seen[0], seen[1]

    def _rounded(self, columns: int) -> int:
        return min(self.columns, -(-columns // COLUMN_STEP) * COLUMN_STEP)
