"""Memory of what a model has read: keys and values of token sequences, found again by their start.

Sequences are kept in blocks of 16 tokens, each under its parent block, so that what begins alike is
stored once: a system prompt, a task's description, an episode so far. The least recently used block
goes first. Only what was read as a prompt is kept, not what was decoded token by token: the two
differ in the last bits, and an answer must not depend on what happens to be remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dreamgym.models.cache import CacheShape, KVCache, zeros
from dreamgym.models.requirement import torch

BLOCK = 16

Key = tuple[int, tuple[int, ...]]
"""A block's parent and its own tokens: no two sequences are ever taken for each other."""


@dataclass(frozen=True, slots=True)
class _Block:
    serial: int
    """Never used again, so that a child of a block that is gone cannot find a new parent."""
    slot: int


class PrefixMemory:
    """Blocks of keys and values, up to a number of bytes."""

    def __init__(self, shape: CacheShape, *, capacity_bytes: int) -> None:
        """Make room for blocks; memory is taken as they come."""
        self._shape = shape
        self._capacity = capacity_bytes // (shape.bytes_per_token * BLOCK)
        width = BLOCK * shape.heads * shape.head_dim
        self._pool = zeros(shape.layers, 2, self._capacity, width)
        self._blocks: OrderedDict[Key, _Block] = OrderedDict()
        self._free = list(range(self._capacity))
        self._serial = 0

    @property
    def capacity_tokens(self) -> int:
        """How many tokens there is room for."""
        return self._capacity * BLOCK

    @property
    def tokens(self) -> int:
        """How many tokens are remembered."""
        return len(self._blocks) * BLOCK

    def known(self, ids: Sequence[int]) -> int:
        """Return how many tokens from the start of a sequence are remembered."""
        return len(self._trail(ids)) * BLOCK

    def recall(self, rows: Sequence[Sequence[int]], cache: KVCache) -> None:
        """Fill the first rows of a cache with what is remembered of these sequences.

        Where a row holds a beginning of its sequence already, the rest is added. The last token of
        a sequence is always left out: someone wants to know what follows it.
        """
        runs: list[tuple[int, int, np.ndarray]] = []
        per_row = cache.columns // BLOCK
        places, held = cache.at.tolist(), cache.lengths.tolist()
        for row, ids in enumerate(rows):
            trail = self._trail(ids[:-1])
            self._touch(trail)
            if len(trail) * BLOCK > held[row]:
                start, first = held[row] // BLOCK, places[row] * per_row
                slots = np.array([block.slot for _, block in trail[start:]])
                runs.append((first + start, first + len(trail), slots))
                held[row] = len(trail) * BLOCK
        cache.lengths[:] = torch.tensor(held)
        for held, pool in self._layers(cache, bool(runs)):
            target, source = held.numpy(), pool.numpy()
            for first, last, slots in runs:
                # Straight to its place: what is remembered is too much to be copied twice.
                np.take(source, slots, axis=0, out=target[first:last], mode="clip")

    def keep(self, rows: Sequence[Sequence[int]], cache: KVCache) -> None:
        """Remember the whole blocks of sequences whose tokens the first rows of a cache hold."""
        places: dict[int, int] = {}
        per_row = cache.columns // BLOCK
        at = cache.at.tolist()
        for row, ids in enumerate(rows):
            trail = self._trail(ids)
            self._touch(trail)
            parent = trail[-1][1].serial if trail else 0
            for number in range(len(trail), min(len(ids) // BLOCK, self._capacity)):
                key = (parent, tuple(ids[number * BLOCK : (number + 1) * BLOCK]))
                block = self._add(key)
                parent = block.serial
                # A slot that was taken and lost again within this call gets its last owner.
                places[block.slot] = at[row] * per_row + number
        slots, kept = np.array(list(places)), np.array(list(places.values()))
        for held, pool in self._layers(cache, bool(places)):
            pool.numpy()[slots] = held.numpy()[kept]

    def _layers(self, cache: KVCache, any_places: bool) -> Iterator[tuple[Any, Any]]:
        """Yield each layer's keys, then values: those of a cache by blocks, and those kept."""
        for layer in range(self._shape.layers if any_places else 0):
            for kind in (0, 1):
                pool = self._pool[layer, kind]
                yield cache.store[layer, kind].view(-1, pool.shape[1]), pool

    def _touch(self, trail: list[tuple[Key, _Block]]) -> None:
        for key, _ in reversed(trail):  # a parent outlives its children
            self._blocks.move_to_end(key)

    def forget(self) -> None:
        """Let go of everything."""
        self._blocks.clear()
        self._free = list(range(self._capacity))

    def _add(self, key: Key) -> _Block:
        if not self._free:
            _, oldest = self._blocks.popitem(last=False)
            self._free.append(oldest.slot)
        self._serial += 1
        block = self._blocks[key] = _Block(self._serial, self._free.pop())
        return block

    def _trail(self, ids: Sequence[int]) -> list[tuple[Key, _Block]]:
        """Return the remembered blocks that a sequence begins with, in order."""
        trail: list[tuple[Key, _Block]] = []
        parent = 0
        for start in range(0, len(ids) - BLOCK + 1, BLOCK):
            key = (parent, tuple(ids[start : start + BLOCK]))
            block = self._blocks.get(key)
            if block is None:
                break
            trail.append((key, block))
            parent = block.serial
        return trail
