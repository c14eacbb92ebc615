"""Weights to begin with: small random numbers, and a circuit that copies.

What a small model of a text world does most is copy: a name from the page, a page from a reference.
The circuit for it ("look where this was said before, say what came next") needs two layers that
work together, and a plain Llama spends most of its training on finding it. Here it is laid out
beforehand, in ordinary weights of an ordinary Llama, which training changes like all others:

- one number of every embedding is the same for all tokens, so that a head can attend by position
  alone;
- the first layer's heads each look a fixed number of tokens back (1, 2, 3, 4) and add what they see
  there, each turned its own way so that it is not taken for the token itself;
- the second layer's heads compare the current token (half of them: the last two) with what stands
  *before* every earlier token, and add the token that they find, unturned: tied embeddings make it
  the likeliest one to come next.
"""

from __future__ import annotations

import math

from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.requirement import torch

WEIGHT_STD = 0.02
EMBEDDING_STD = 0.12
"""Tied embeddings also read the answer off: with the usual 0.02 the scores begin too flat."""
CONSTANT = 4.0
"""The number that all embeddings share, in units of `EMBEDDING_STD`."""
OFFSETS = (1, 2, 3, 4)
"""How far back the heads of the first layer look."""
SHARPNESS = 6.0
"""By how much the score of the token at the right distance beats its neighbours'."""
MATCH = 8.0
"""The score of a full match in the second layer."""
_FAST, _SLOW = 0.15, 0.003
"""Angles per position: pairs that turn faster tell neighbours apart, pairs that turn more slowly
hardly notice positions and compare what is said."""


def set_start_weights(model: Llama, *, seed: int, copying: bool = True) -> None:
    """Give a model its first weights.

    Args:
        model: the model.
        seed: the same seed gives the same weights.
        copying: lay out the circuit that copies; needs two layers, and keys for every head.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = model.shape
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1.0)
                continue
            ends_block = name.endswith(("out.weight", "down.weight"))
            std = WEIGHT_STD / math.sqrt(2 * shape.layers) if ends_block else WEIGHT_STD
            weight.normal_(
                0.0, EMBEDDING_STD if weight is model.embed.weight else std, generator=generator
            )
        if copying and shape.layers > 1 and shape.kv_heads == shape.heads:
            lay_copy_circuit(model, generator)


def lay_copy_circuit(model: Llama, generator: torch.Generator) -> None:
    """Lay the circuit into the first two layers."""
    shape = model.shape
    width = shape.head_dim
    model.embed.weight[:, 0] = CONSTANT * EMBEDDING_STD
    seen = _directions(width, shape.hidden, generator)
    """How the first layer reads a token; the second reads it alike to compare."""
    written: list[torch.Tensor] = []
    for head, offset in enumerate(OFFSETS[: shape.heads]):
        query, key, value, out = _head(model, 0, head)
        _look_back(query, key, offset=offset, shape=shape)
        value.copy_(seen)
        written.append(_directions(width, shape.hidden, generator))
        out.copy_(EMBEDDING_STD * written[-1].T)
    for head in range(shape.heads):
        query, key, value, out = _head(model, 1, head)
        own = (seen, written[0])
        """The current token, and the one before it, as the first layer left it here."""
        earlier = (written[0], written[1] if len(written) > 1 else written[0])
        """What stands one and two before an earlier token."""
        tokens = 1 if head < shape.heads // 2 or len(written) == 1 else 2
        _look_up(query, key, pairs=list(zip(own, earlier, strict=True))[:tokens], shape=shape)
        brought = _directions(width, shape.hidden, generator)
        value.copy_(brought)
        out.copy_(EMBEDDING_STD * brought.T)


def _head(model: Llama, layer: int, head: int) -> tuple[torch.Tensor, ...]:
    """Return a head's query, key, value [head_dim, hidden] and out [hidden, head_dim] matrices."""
    shape = model.shape
    rows = model.block(layer).qkv.weight.view(3, shape.heads, shape.head_dim, shape.hidden)
    out = model.block(layer).out.weight.view(shape.hidden, shape.heads, shape.head_dim)
    return rows[0, head], rows[1, head], rows[2, head], out[:, head]


def _directions(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return random directions at right angles, none of which sees the shared number."""
    found: torch.Tensor = torch.linalg.qr(torch.randn(size, count, generator=generator))[0].T
    found = found.contiguous()
    found[:, 0] = 0.0
    return found


def _angles(shape: LlamaShape) -> torch.Tensor:
    steps = torch.arange(0, shape.head_dim, 2) / shape.head_dim
    return torch.pow(shape.rope_theta, -steps)


def _look_back(query: torch.Tensor, key: torch.Tensor, *, offset: int, shape: LlamaShape) -> None:
    """Make a head attend to the token `offset` places back, by the shared number alone."""
    angles = _angles(shape)
    share = (angles > _FAST) / (angles > _FAST).sum()
    # The score at a distance from the wanted place is the sum of share * cos(angle * distance).
    near = (share * torch.cos(torch.arange(-1, 512)[:, None] * angles)).sum(1)
    lead = near[1] - torch.cat((near[:1], near[2:])).max()
    constant = CONSTANT / math.sqrt(1 + CONSTANT**2 / shape.hidden)
    size = torch.sqrt(share * SHARPNESS / lead * math.sqrt(shape.head_dim)) / constant
    query.mul_(0.1)
    key.mul_(0.1)
    query[0::2, 0] = size * torch.cos(-offset * angles)
    query[1::2, 0] = size * torch.sin(-offset * angles)
    key[0::2, 0] = size
    key[1::2, 0] = 0.0


def _look_up(
    query: torch.Tensor,
    key: torch.Tensor,
    *,
    pairs: list[tuple[torch.Tensor, torch.Tensor]],
    shape: LlamaShape,
) -> None:
    """Make a head attend to where its queries' directions hold what its keys' directions hold."""
    slow = (_angles(shape) < _SLOW).repeat_interleave(2).nonzero()[:, 0]
    strength = math.sqrt(MATCH * math.sqrt(shape.head_dim) / len(slow))
    query.mul_(0.1)
    key.mul_(0.1)
    for number, places in enumerate(slow.chunk(len(pairs))):
        own, earlier = pairs[number]
        taken = slice(number * len(places), (number + 1) * len(places))
        query[places] = strength * own[taken]
        key[places] = strength * earlier[taken]
