"""A small Llama for reading and decoding only: the same numbers as `llama.py` in less time.

Weights are kept the way products like them, transposed and with the norms' weights taken up;
results go to memory that is used again; filler is left out of everything but attention. Products
of this form give a token the same bits in any company (see `company.py`), and so does attention:
how many tokens go through a pass does not change what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dreamgym.models.cache import CacheShape, KVCache, Part, Span
from dreamgym.models.company import accompanied, filled_up, whole_steps
from dreamgym.models.llama import Llama, attend
from dreamgym.models.requirement import functional, nn, torch


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's weights, [in, out]."""

    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Look:
    """Attention of some neighbouring rows: their tokens in a grid, as wide as the longest row."""

    tokens: slice
    """Which tokens of the pass are theirs."""
    rows: slice
    """Which rows of the cache are."""
    width: int
    places: torch.Tensor | None
    """Where in the grid the tokens stand; None: there is no filler."""
    mask: torch.Tensor
    """[rows, 1, width, columns]"""


@dataclass(frozen=True, slots=True)
class _Pass:
    """The tokens of one pass that are not filler, one after the other."""

    looks: tuple[_Look, ...]
    turn: torch.Tensor
    """[tokens, 1, head_dim / 2]: how far heads are turned."""


class QuickLlama:
    """Reads with the weights that a model had when `take_weights` was called last.

    Not for use by two threads at once.
    """

    def __init__(self, model: Llama) -> None:
        """Take a model; nothing of it is changed."""
        self._model = model
        self._shape = model.shape
        self._layers: list[_Layer] = []
        self._head = torch.empty(0)
        self._room: dict[str, torch.Tensor] = {}
        self._ramp = torch.zeros(model.positions + whole_steps(model.positions))
        self._ramp[model.positions :] = float("-inf")

    @property
    def positions(self) -> int:
        """The longest sequence."""
        return self._model.positions

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""
        return self._model.cache_shape

    @property
    def steady(self) -> bool:
        """Whether a token's keys and values are the same bits however it was read."""
        return self._shape.kv_heads == self._shape.heads

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the weights of the model."""
        return self._model.parameters()

    def take_weights(self) -> None:
        """Copy the model's weights as they are now."""
        self._layers = []
        for number in range(self._shape.layers):
            block = self._model.block(number)
            before, between = block.attention_norm.weight[:, None], block.feed_norm.weight[:, None]
            self._layers.append(
                _Layer(
                    (before * block.qkv.weight.t()).contiguous(),
                    block.out.weight.t().contiguous(),
                    (between * block.gate_up.weight.t()).contiguous(),
                    block.down.weight.t().contiguous(),
                )
            )
        model = self._model
        head = model.embed.weight if model.head is None else model.head.weight
        self._head = (model.norm.weight[:, None] * head.t()).contiguous()

    def hidden(self, ids: torch.Tensor, *, cache: KVCache, span: Span) -> torch.Tensor:
        """Return the last hidden states, scaled but not yet by the weights of the last norm.

        See `CausalLM.hidden`. What comes out for filler means nothing.
        """
        rows, tokens = ids.shape
        real = torch.arange(rows * tokens) if span.real is None else span.real
        packed = accompanied(real)
        work = self._pass(span, packed, np.bincount(packed.numpy() // tokens, minlength=rows))
        x = torch.index_select(
            self._model.embed.weight, 0, ids.flatten()[packed],
            out=self._fresh("x", len(packed), self._shape.hidden),
        )  # fmt: skip
        slots = _known(span.slots)[packed]
        for number in range(self._shape.layers - 1):
            self._attend(number, x, work, cache, slots)
            self._feed(number, x)
        if span.asked is None:
            self._attend(self._shape.layers - 1, x, work, cache, slots)
            self._feed(self._shape.layers - 1, x)
            whole = x.new_zeros(rows * tokens, x.shape[1])
            return _place(whole, packed, self._norm(x)).view(rows, tokens, -1)
        wanted = span.asked >= 0
        counts = wanted.sum(1).numpy()
        chosen = (span.asked + torch.arange(rows)[:, None] * tokens)[wanted]
        chosen = accompanied(chosen)
        counts[np.flatnonzero(counts)[-1:]] += len(chosen) - counts.sum()
        order = torch.zeros(rows * tokens, dtype=torch.long)
        order[packed] = torch.arange(len(packed))
        few = self._pass(span, chosen, counts)
        self._keep(self._shape.layers - 1, x, work, cache, slots)
        normed = self._norm(self._finish(x, order[chosen], few, cache))
        found = normed.new_zeros(*span.asked.shape, normed.shape[1])
        found[wanted] = normed[: int(wanted.sum())]
        return found

    def _pass(self, span: Span, packed: torch.Tensor, counts: np.ndarray) -> _Pass:
        """Lay out a pass of some tokens, so many of each row."""
        rows, tokens = span.positions.shape
        positions = span.positions.flatten()[packed]
        ends = [0, *np.cumsum(counts).tolist()]
        looks = []
        for part in span.parts or (Part(0, rows, _known(span.mask).shape[-1], tokens),):
            some = counts[part.start : part.stop]
            width = int(some.max())
            if not width:
                continue
            width = filled_up(width)
            own = slice(ends[part.start], ends[part.stop])
            places, where = None, positions[own] if span.mask is None else packed[own]
            if own.stop - own.start < len(some) * width:
                places = torch.from_numpy(np.flatnonzero(np.arange(width) < some[:, None]))
                where = where.new_zeros(len(some) * width).index_copy_(0, places, where)
            if span.mask is None:
                mask = self._causal(part.columns).index_select(0, self.positions - 1 - where)
            else:
                flat = span.mask.reshape(rows * tokens, -1)[:, : part.columns]
                mask = flat.index_select(0, where)
            held = slice(part.start + part.shift, part.stop + part.shift)
            looks.append(
                _Look(own, held, width, places, mask.view(len(some), 1, width, part.columns))
            )
        return _Pass(tuple(looks), self._model.turns[positions][:, None])

    def _causal(self, columns: int) -> torch.Tensor:
        """Return a view whose row n lets all but the last n of the positions be seen."""
        room, last = self._ramp, self.positions
        return room.as_strided((last, columns), (1, 1))

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for what `hidden` returned, [.., hidden]."""
        flat = hidden.reshape(-1, hidden.shape[-1])
        scores = (accompanied(flat) @ self._head)[: len(flat)]
        return scores.view(*hidden.shape[:-1], self._head.shape[1])

    def _attend(
        self, number: int, x: torch.Tensor, work: _Pass, cache: KVCache, slots: torch.Tensor
    ) -> None:
        shape, layer = self._shape, self._layers[number]
        own = shape.heads * shape.head_dim
        turning = own + shape.kv_heads * shape.head_dim
        heads = self._product("heads", self._norm(x), layer.qkv)
        _turn(heads[:, :turning], work.turn)
        _put(cache.store[number], slots, heads[:, own:])
        x.addmm_(self._look(number, heads[:, :own], work, cache), layer.out)

    def _keep(
        self, number: int, x: torch.Tensor, work: _Pass, cache: KVCache, slots: torch.Tensor
    ) -> None:
        """Store keys and values of a layer of which nothing else is needed for most tokens."""
        shape = self._shape
        own, kept = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        pairs = self._product("heads", self._norm(x), self._layers[number].qkv[:, own:])
        _turn(pairs[:, :kept], work.turn)
        _put(cache.store[number], slots, pairs)

    def _finish(
        self, x: torch.Tensor, chosen: torch.Tensor, few: _Pass, cache: KVCache
    ) -> torch.Tensor:
        """Go through the last layer, whose output is needed only for the tokens asked for."""
        shape, number = self._shape, self._shape.layers - 1
        layer, x = self._layers[number], x[chosen]
        q = torch.mm(self._norm(x), layer.qkv[:, : shape.heads * shape.head_dim])
        _turn(q, few.turn)
        x.addmm_(self._look(number, q, few, cache), layer.out)
        self._feed(number, x)
        return x

    def _look(self, number: int, q: torch.Tensor, work: _Pass, cache: KVCache) -> torch.Tensor:
        """Return what each token sees, [tokens, heads * dim]."""
        shape, held = self._shape, cache.store[number]
        seen = self._fresh("seen", *q.shape)
        for look in work.looks:
            rows, _, width, columns = look.mask.shape
            grid = q[look.tokens]
            if look.places is not None:
                grid = _place(self._fresh("q", rows * width, q.shape[1]), look.places, grid)
            keys, values = held[:, look.rows, :columns].transpose(2, 3)
            grid = grid.view(rows, width, shape.heads, shape.head_dim)
            found = attend(grid, keys, values, mask=look.mask).reshape(rows * width, -1)
            if look.places is None:
                seen[look.tokens] = found
            else:
                torch.index_select(found, 0, look.places, out=seen[look.tokens])
        return seen

    def _feed(self, number: int, x: torch.Tensor) -> None:
        layer = self._layers[number]
        gate, up = self._product("inner", self._norm(x), layer.gate_up).chunk(2, dim=-1)
        x.addmm_(functional.silu(gate, inplace=True).mul_(up), layer.down)

    def _norm(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale.mul_(scale).div_(x.shape[1]).add_(self._shape.norm_epsilon).rsqrt_()
        return torch.mul(x, scale, out=self._fresh("normed", *x.shape))

    def _product(self, name: str, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, weight, out=self._fresh(name, len(x), weight.shape[1]))

    def _fresh(self, name: str, rows: int, width: int) -> torch.Tensor:
        """Return memory that was used before: fresh memory costs as much as a small product."""
        room = self._room.get(name)
        if room is None or room.numel() < rows * width:
            room = self._room[name] = torch.zeros(rows * width)
        return room[: rows * width].view(rows, width)


def _put(held: torch.Tensor, slots: torch.Tensor, pairs: torch.Tensor) -> None:
    """Store a layer's keys and values, side by side in `pairs`."""
    width = pairs.shape[1] // 2
    for kind in (0, 1):
        part = pairs[:, kind * width : (kind + 1) * width]
        _place(held[kind].view(-1, width), slots, part)


def _place(whole: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Put rows where they belong in a whole.

    By numpy, on the same memory: torch's `index_copy_` takes two to four times as long.
    """
    whole.numpy()[places.numpy()] = rows.numpy()
    return whole


def _known(tensor: torch.Tensor | None) -> torch.Tensor:
    if tensor is None:
        raise ValueError("a span of tokens without a place in a cache")
    return tensor


def _turn(x: torch.Tensor, turn: torch.Tensor) -> None:
    """Turn heads laid side by side by their tokens' positions, in place."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, turn.shape[-1], 2)))
    pairs.mul_(turn)
