"""A small Llama for reading and decoding only: the same numbers as `llama.py` in less time.

Weights are kept the way products like them, transposed and with the norms' weights taken up;
results go to memory that is used again; filler is left out of everything but attention. Products
of this form give a token the same bits in any company of at least two, and so does attention: how
many tokens go through a pass does not change what comes out (on the processors tried).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dreamgym.models.cache import CacheShape, KVCache, Part, Span
from dreamgym.models.llama import Llama, attend
from dreamgym.models.requirement import functional, nn, torch

QUERY_BLOCK = 32
"""Attention takes queries in blocks of so many, or of a multiple."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's weights, [in, out]."""

    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Pass:
    """The tokens of one pass that are not filler, one after the other."""

    span: Span
    parts: tuple[Part, ...]
    places: torch.Tensor | None
    """Where they stand, counted through the rows; None: there is no filler."""
    turn: torch.Tensor
    """[tokens, 1, head_dim / 2]: how far heads are turned."""

    def spread(self, packed: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        """Put tokens where they stand."""
        return packed if self.places is None else _place(whole, self.places, packed)

    def gather(self, whole: torch.Tensor) -> torch.Tensor:
        """Take tokens from where they stand."""
        return whole if self.places is None else whole.index_select(0, self.places)

    def only(self, asked: torch.Tensor) -> tuple[_Pass, torch.Tensor]:
        """Return the pass of the tokens asked for alone, and their numbers in this one."""
        rows, tokens = self.span.positions.shape
        row = torch.arange(rows)[:, None]
        numbers = (asked + row * tokens).flatten()
        if self.places is not None:
            order = numbers.new_zeros(rows * tokens)
            order[self.places] = torch.arange(len(self.places))
            numbers = order[numbers]
        mask = _known(self.span.mask)[row, 0, asked][:, None]
        span = Span(self.span.positions.gather(1, asked), mask)
        parts = tuple(replace(part, tokens=asked.shape[1]) for part in self.parts)
        return _Pass(span, parts, None, self.turn[numbers]), numbers


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

    @property
    def positions(self) -> int:
        """The longest sequence."""
        return self._model.positions

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""
        return self._model.cache_shape

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
        work = self._begin(span)
        flat = work.gather(ids.flatten())
        x = torch.index_select(
            self._model.embed.weight, 0, flat, out=self._fresh("x", len(flat), self._shape.hidden)
        )
        slots = work.gather(_known(span.slots))
        for number in range(self._shape.layers - 1):
            self._attend(number, x, work, cache, slots)
            self._feed(number, x)
        normed = self._norm(self._finish(x, work, cache, slots))
        rows, tokens = ids.shape
        if span.asked is not None:
            return normed.view(rows, -1, normed.shape[1])[:, : span.asked.shape[1]].clone()
        whole = normed.new_zeros(rows * tokens, normed.shape[1])
        return work.spread(normed, whole).view(rows, tokens, -1).clone()

    def _begin(self, span: Span) -> _Pass:
        rows, tokens = span.positions.shape
        places = span.real
        if rows * tokens == 1 or (places is not None and len(places) == 1):
            # Among two, also if the other is the token itself.
            places = torch.zeros(2, dtype=torch.long) if places is None else places.expand(2)
        positions = span.positions.expand(rows, tokens).flatten()
        positions = positions if places is None else positions[places]
        turn = self._model.turns[positions][:, None]
        parts = span.parts or (Part(0, rows, _known(span.mask).shape[-1], tokens),)
        return _Pass(span, parts, places, turn)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for what `hidden` returned, [.., hidden]."""
        flat = hidden.reshape(-1, hidden.shape[-1])
        pair = flat.expand(2, -1) if len(flat) == 1 else flat
        scores = (pair @ self._head)[: len(flat)]
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

    def _finish(
        self, x: torch.Tensor, work: _Pass, cache: KVCache, slots: torch.Tensor
    ) -> torch.Tensor:
        """Go through the last layer, whose output is needed only for the tokens asked for."""
        number, asked = self._shape.layers - 1, work.span.asked
        if asked is None:
            self._attend(number, x, work, cache, slots)
            self._feed(number, x)
            return x
        shape, layer = self._shape, self._layers[number]
        own, kept = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        normed = self._norm(x)
        pairs = self._product("heads", normed, layer.qkv[:, own:])
        _turn(pairs[:, :kept], work.turn)
        _put(cache.store[number], slots, pairs)
        few, numbers = work.only(asked.expand(1, 2) if asked.numel() == 1 else asked)
        q = torch.mm(normed[numbers], layer.qkv[:, :own])
        _turn(q, few.turn)
        x = x[numbers].addmm_(self._look(number, q, few, cache), layer.out)
        self._feed(number, x)
        return x

    def _look(self, number: int, q: torch.Tensor, work: _Pass, cache: KVCache) -> torch.Tensor:
        """Return what each token sees, [tokens, heads * dim]."""
        shape, span = self._shape, work.span
        rows, tokens = span.positions.shape
        whole = work.spread(q, self._fresh("q", rows * tokens, q.shape[1]))
        whole = whole.view(rows, tokens, shape.heads, shape.head_dim)
        held = cache.store[number].transpose(2, 3)
        seen = self._fresh("seen", rows * tokens, q.shape[1]).view_as(whole)
        for part in work.parts:
            seen[part.start : part.stop, : part.tokens] = _look_in(part, whole, held, span)
        return work.gather(seen.view(rows * tokens, -1))

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


def _look_in(part: Part, q: torch.Tensor, held: torch.Tensor, span: Span) -> torch.Tensor:
    rows = slice(part.start, part.stop)
    asking, mask = q[rows, : part.tokens], _known(span.mask)[rows, :, : part.tokens, : part.columns]
    if part.tokens % QUERY_BLOCK == 1:  # a single query takes another path, with other last bits
        asking = torch.cat((asking, asking[:, -1:]), dim=1)
        mask = torch.cat((mask, mask[:, :, -1:]), dim=2)
    keys, values = held[:, rows, :, : part.columns]
    return attend(asking, keys, values, mask=mask)[:, : part.tokens]
