"""The Llama architecture, written for speed on few cores; weights in Hugging Face format.

One product for query, key and value, one for gate and up, torch's fused attention, tables for the
rotation of positions. The same numbers as `transformers.LlamaForCausalLM`, whose `config.json` and
`model.safetensors` are read and written here. Bias terms and scaled rotations are not covered: such
models go through `hf.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.models.cache import CacheShape, KVCache, Piece, Span
from dreamgym.models.llama_files import LlamaShape, write_llama
from dreamgym.models.requirement import functional, nn, torch


class ScaledNorm(torch.autograd.Function):
    """Scale vectors to unit mean square, then by weights, in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """Return the scaled vectors."""
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.rsqrt(length * length / x.shape[-1] + epsilon)
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        return unit * weight

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients of x and of the weights."""
        (grad,) = grads
        unit, scale, weight = ctx.saved_tensors
        along = grad * unit
        inner = (along @ weight / weight.shape[0]).unsqueeze(-1)
        x_grad = torch.addcmul(grad * weight, unit, inner, value=-1).mul_(scale)
        return x_grad, along.flatten(0, -2).sum(0), None


class RMSNorm(nn.Module):
    """The norm with its learnt weights."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scaled vectors."""
        return ScaledNorm.apply(x, self.weight, self.epsilon)  # type: ignore[no-any-return, no-untyped-call]


class Block(nn.Module):
    """One layer: attention, then the feed-forward part."""

    def __init__(self, shape: LlamaShape, layer: int) -> None:
        super().__init__()
        self.shape, self.layer = shape, layer
        width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.attention_norm = RMSNorm(shape.hidden, shape.norm_epsilon)
        self.qkv = nn.Linear(shape.hidden, width, bias=False)
        self.out = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self.feed_norm = RMSNorm(shape.hidden, shape.norm_epsilon)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(
        self, x: torch.Tensor, turn: torch.Tensor, *, cache: KVCache | None, span: Span
    ) -> torch.Tensor:
        """Add what this layer has to say to the residual stream [rows, tokens, hidden]."""
        x = x + self.out(self._attend(self.attention_norm(x), turn, cache=cache, span=span))
        return x + self._feed(x)

    def _attend(
        self, x: torch.Tensor, turn: torch.Tensor, *, cache: KVCache | None, span: Span
    ) -> torch.Tensor:
        shape = self.shape
        rows, tokens, _ = x.shape
        heads = self.qkv(x).view(rows, tokens, -1, shape.head_dim)
        turning, v = heads.split([shape.heads + shape.kv_heads, shape.kv_heads], dim=2)
        q, k = rotate(turning, turn).split([shape.heads, shape.kv_heads], dim=2)
        if cache is None:
            keys, values = k.transpose(1, 2), v.transpose(1, 2)
        else:
            keys, values = cache.put(self.layer, span, keys=k, values=v)
        if span.pieces:
            seen = torch.cat([look(piece, q, keys, values) for piece in span.pieces], dim=1)
        else:
            seen = attend(q, keys, values, mask=span.mask)
        return seen.reshape(rows, tokens, -1)

    def _feed(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(self.feed_norm(x)).chunk(2, dim=-1)
        return self.down(functional.silu(gate) * up)  # type: ignore[no-any-return]


def rotate(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Turn each pair of neighbouring numbers by its position's angles, as complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2)


def attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, mask: torch.Tensor | None
) -> torch.Tensor:
    """Attend with q [rows, tokens, heads, dim] over [rows, kv_heads, columns, dim].

    Without a mask, each token sees itself and those before it. Returns the shape of q.
    """
    groups = q.shape[2] // keys.shape[1]
    if mask is not None and q.shape[1] == 1 and groups > 1:
        # One new token: the query heads of a group can share a pass over the group's keys.
        rows, _, heads, dim = q.shape
        grouped = q.view(rows, heads // groups, groups, dim)
        seen = functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask)
        return seen.reshape(rows, 1, heads, dim)
    seen = functional.scaled_dot_product_attention(
        q.transpose(1, 2), keys, values, attn_mask=mask, is_causal=mask is None,
        enable_gqa=groups > 1,
    )  # fmt: skip
    return seen.transpose(1, 2)


def look(piece: Piece, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attend with the tokens of a piece over its columns alone."""
    ours, theirs = (
        torch.cat([one[:, :, columns] for columns in piece.columns], dim=2)
        for one in (keys, values)
    )
    return attend(q[:, piece.start : piece.stop], ours, theirs, mask=piece.mask)


class Llama(nn.Module):
    """A causal language model of the Llama architecture."""

    turns: torch.Tensor

    def __init__(self, shape: LlamaShape, settings: Mapping[str, Any] | None = None) -> None:
        """Make a model whose weights are still to be set.

        Args:
            shape: its sizes.
            settings: entries for `config.json` beyond the sizes, such as the ids of end tokens.
        """
        super().__init__()
        self.shape = shape
        self.settings = dict(settings or {})
        self.embed = nn.Embedding(shape.vocab_size, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape, layer) for layer in range(shape.layers))
        self.norm = RMSNorm(shape.hidden, shape.norm_epsilon)
        self.head = None if shape.tied else nn.Linear(shape.hidden, shape.vocab_size, bias=False)
        self.register_buffer("turns", rotation_table(shape), persistent=False)

    @property
    def vocab_size(self) -> int:
        """How many token ids the model knows."""
        return self.shape.vocab_size

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return self.shape.hidden

    @property
    def positions(self) -> int:
        """The longest sequence."""
        return self.shape.positions

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""
        return self.shape.cache

    def block(self, layer: int) -> Block:
        """Return one layer."""
        return self.blocks[layer]  # type: ignore[return-value]

    def hidden(
        self, ids: torch.Tensor, *, cache: KVCache | None = None, span: Span | None = None
    ) -> torch.Tensor:
        """Return the last hidden states [rows, tokens, hidden] of ids [rows, tokens].

        Each token sees those before it; rows may be padded on the right. With a cache, the tokens
        follow those it holds and are added to it; the caller then counts them in `cache.lengths`.
        A `span` says otherwise where tokens stand and what they see; where it asks for some tokens
        of each row, the result is [rows, some, hidden].
        """
        tokens = ids.shape[1]
        if span is None:
            span = Span(torch.arange(tokens)[None], None) if cache is None else cache.span(tokens)
        if int(span.positions.max()) >= self.positions:
            raise ConfigError(
                f"a sequence of {int(span.positions.max()) + 1} tokens is too long: "
                f"the model was made for {self.positions}"
            )
        x = self.embed(ids)
        turn = self.turns[span.positions][:, :, None]
        for block in self.blocks:
            x = block(x, turn, cache=cache, span=span)
        if span.asked is not None:
            x = x[torch.arange(len(x))[:, None], span.asked]
        return self.norm(x)  # type: ignore[no-any-return]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for hidden states [.., hidden]."""
        weight = self.embed.weight if self.head is None else self.head.weight
        return functional.linear(hidden, weight)

    def forward(self, ids: torch.Tensor, *, cache: KVCache | None = None) -> torch.Tensor:
        """Return the scores of every next token, [rows, tokens, vocab]."""
        return self.logits(self.hidden(ids, cache=cache))

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors` as transformers reads them."""
        write_llama(folder, self.state_dict(), shape=self.shape, settings=self.settings)


def rotation_table(shape: LlamaShape) -> torch.Tensor:
    """Return [positions, head_dim / 2]: every position's turns, as complex numbers of length 1."""
    steps = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
    angles = torch.arange(shape.positions).float()[:, None] * (1.0 / shape.rope_theta**steps)
    return torch.polar(torch.ones_like(angles), angles)
