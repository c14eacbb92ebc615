"""Weights to begin with: small random numbers, and a circuit that copies.

What a small model of a text world does most is copy: a name from the page, a page from a reference.
The circuit for it ("look where this was said before, say what came next") needs two layers that
work together, and a plain Llama spends most of its training on finding it. Here it is laid out
beforehand, in ordinary weights of an ordinary Llama, which training changes like all others:

- one number of every embedding is the same for all tokens, so that a head can attend by position
  alone;
- the first layer's heads each look a fixed number of tokens back (1, 2, 3, 4) and write down what
  they see there; for the first two, embeddings leave room, so that the notes are not taken for the
  token itself;
- the second layer's heads compare the current token (half of them: the last two) with the notes of
  every earlier token on what stood before it, and add the token that they find: tied embeddings
  make it the likeliest one to come next.

`benchmarks/copying.py` measures what this is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.requirement import torch

WEIGHT_STD = 0.02
EMBEDDING_STD = 0.12
"""Tied embeddings also read the answer off: with the usual 0.02 the scores begin too flat."""
SHARED = 4.0
"""The number that all embeddings have in common, in units of `EMBEDDING_STD`."""
OFFSETS = (1, 2, 3, 4)
"""How far back the heads of the first layer look."""
LEAD = 6.0
"""By how much the score of the token at the right distance beats any other's."""
MATCH = 8.0
"""The score of a full match in the second layer."""
LOUDNESS = 3.0
"""How much a token that was found counts, against the current one."""
SLOW = 0.003
"""Pairs that turn by less than this per position hardly notice positions: they compare tokens."""


def set_start_weights(model: Llama, *, seed: int, copying: bool = True) -> None:
    """Give a model its first weights.

    Args:
        model: the model.
        seed: the same seed gives the same weights.
        copying: lay out the circuit that copies, where the shape has room for it: two layers, keys
            for every head, and two heads' width to spare in the embeddings.
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
            std = EMBEDDING_STD if weight is model.embed.weight else std
            weight.normal_(0.0, std, generator=generator)
        if copying and has_room(shape):
            _Circuit(model, generator).lay()


def has_room(shape: LlamaShape) -> bool:
    """Say whether a model can hold the circuit."""
    wide = shape.hidden >= 4 * shape.head_dim and shape.heads >= len(OFFSETS)
    return wide and shape.layers > 1 and shape.kv_heads == shape.heads and shape.tied


@dataclass(frozen=True, slots=True)
class _Head:
    """Views of one head's weights: writing to them changes the model."""

    query: torch.Tensor
    """[head_dim, hidden], like key and value."""
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor
    """[hidden, head_dim]"""


class _Circuit:
    """The circuit of one model, while it is laid."""

    def __init__(self, model: Llama, generator: torch.Generator) -> None:
        self._model, self._shape, self._generator = model, model.shape, generator
        steps = torch.arange(0, self._shape.head_dim, 2) / self._shape.head_dim
        self._angles = torch.pow(self._shape.rope_theta, -steps)
        self._noted = self._shape.hidden - 2 * self._shape.head_dim
        """Where the room for notes begins; embeddings are below it."""

    def lay(self) -> None:
        """Lay the circuit into the first two layers."""
        hidden, width = self._shape.hidden, self._shape.head_dim
        embed = self._model.embed.weight
        # All of one length, so that the norm leaves the shared number alike for all.
        embed[:, self._noted :] *= 0.05
        embed[:, 0] = 0.0
        embed.div_(embed.norm(dim=1, keepdim=True) / (EMBEDDING_STD * math.sqrt(hidden)))
        embed[:, 0] = SHARED * EMBEDDING_STD
        seen = self._directions(width, 1, self._noted)
        notes = [
            self._directions(width, self._noted, self._noted + width),
            self._directions(width, self._noted + width, hidden),
            *(self._directions(width, 1, hidden) for _ in OFFSETS[2:]),
        ]
        for number, offset in enumerate(OFFSETS):
            head = self._head(0, number)
            self._look_back(head, offset)
            head.value.copy_(seen)
            head.out.copy_(EMBEDDING_STD * notes[number].T)
        # Lengths grow by what the first layer adds; the norm before the second takes them back.
        growth = math.sqrt(1 + SHARED**2 / hidden + len(OFFSETS) * width / hidden)
        brought = self._directions(min(hidden - 1, self._shape.heads * width), 1, hidden)
        for number in range(self._shape.heads):
            head = self._head(1, number)
            pairs = [(seen, notes[0]), (notes[0], notes[1])]
            tokens = 1 if number < self._shape.heads // 2 else 2
            self._look_up(head, pairs[:tokens], growth=growth)
            part = brought[number * width : (number + 1) * width]
            head.value[: len(part)] = growth * part
            head.out[:, : len(part)] = LOUDNESS * EMBEDDING_STD * part.T

    def _look_back(self, head: _Head, offset: int) -> None:
        """Make a head attend to the token `offset` places back, by the shared number alone."""
        angles = self._angles
        share = angles.sqrt() / angles.sqrt().sum()
        # So far from the wanted place, the score is the sum of share * cos(angle * distance).
        others = torch.cat((torch.arange(-len(OFFSETS), 0), torch.arange(1, 2048)))
        lead = 1 - (share * torch.cos(others[:, None] * angles)).sum(1).max()
        shared = SHARED / math.sqrt(1 + SHARED**2 / self._shape.hidden)
        size = torch.sqrt(share * LEAD / lead * math.sqrt(self._shape.head_dim)) / shared
        head.query.mul_(0.1)
        head.key.mul_(0.1)
        head.query[0::2, 0] = size * torch.cos(-offset * angles)
        head.query[1::2, 0] = size * torch.sin(-offset * angles)
        head.key[0::2, 0] = size
        head.key[1::2, 0] = 0.0

    def _look_up(
        self, head: _Head, pairs: list[tuple[torch.Tensor, torch.Tensor]], *, growth: float
    ) -> None:
        """Make a head attend to where the second directions hold what the first hold here."""
        width = self._shape.head_dim
        slow = (self._angles < SLOW).repeat_interleave(2).nonzero()[:, 0]
        strength = growth * math.sqrt(MATCH * math.sqrt(width) / max(1, len(slow)))
        head.query.mul_(0.1)
        head.key.mul_(0.1)
        for (here, there), places in zip(pairs, slow.chunk(len(pairs)), strict=False):
            rows = torch.randperm(width, generator=self._generator)[: len(places)]
            head.query[places] = strength * here[rows]
            head.key[places] = strength * there[rows]

    def _head(self, layer: int, number: int) -> _Head:
        shape, block = self._shape, self._model.block(layer)
        rows = block.qkv.weight.view(3, shape.heads, shape.head_dim, shape.hidden)
        out = block.out.weight.view(shape.hidden, shape.heads, shape.head_dim)
        return _Head(rows[0, number], rows[1, number], rows[2, number], out[:, number])

    def _directions(self, count: int, start: int, stop: int) -> torch.Tensor:
        """Return random directions at right angles that see only some of the numbers."""
        square: torch.Tensor = torch.linalg.qr(
            torch.randn(stop - start, count, generator=self._generator)
        )[0]
        found = torch.zeros(count, self._shape.hidden)
        found[:, start:stop] = square.T
        return found
