"""Memory of what was read: what begins alike is found again, and nothing else is."""

from __future__ import annotations

import random

import torch

from dreamgym.models.cache import CacheShape, KVCache
from dreamgym.models.prefix import BLOCK, PrefixMemory

SHAPE = CacheShape(layers=2, heads=1, head_dim=2)
BLOCK_BYTES = SHAPE.bytes_per_token * BLOCK


def numbers(ids: list[int]) -> torch.Tensor:
    """What a model might keep for tokens: it depends on the token and on all before it."""
    total, found = 0, []
    for token in ids:
        total = (total * 31 + token) % 100003
        found.append(float(total))
    return torch.tensor(found)


def read(rows: list[list[int]]) -> KVCache:
    cache = KVCache.empty(SHAPE, len(rows), columns=max(map(len, rows)))
    for row, ids in enumerate(rows):
        cache.store[:, :, row, : len(ids)] = numbers(ids)[:, None, None]
        cache.lengths[row] = len(ids)
    return cache


def recalled(memory: PrefixMemory, rows: list[list[int]]) -> list[int]:
    """Recall rows, check every number, and return how many tokens were remembered of each."""
    cache = KVCache.empty(SHAPE, len(rows), columns=max(map(len, rows)))
    memory.recall(rows, cache)
    for row, ids in enumerate(rows):
        length = int(cache.lengths[row])
        right = numbers(ids)[:length, None, None].expand(2, 2, -1, 1, 2)
        assert torch.equal(cache.store[:, :, row, :length], right)
        assert not cache.store[:, :, row, length:].any()
    return cache.lengths.tolist()


def test_whole_blocks_come_back_but_never_the_last_token() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=10 * BLOCK_BYTES)
    ids = list(range(40))
    memory.keep([ids], read([ids]))
    assert memory.tokens == 32
    assert memory.known(ids) == 32
    assert recalled(memory, [ids, ids[:32], ids[:33], ids[:20] + [99] * 20, [5]]) == [
        32, 16, 32, 16, 0,
    ]  # fmt: skip


def test_what_begins_alike_is_kept_once() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=10 * BLOCK_BYTES)
    rows = [[*range(32), tail] + [tail] * 15 for tail in range(4)]
    memory.keep(rows, read(rows))
    assert memory.tokens == (2 + 4) * BLOCK
    assert recalled(memory, [[*row, 0] for row in rows]) == [48] * 4


def test_the_same_block_elsewhere_is_another() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=10 * BLOCK_BYTES)
    first, second = [1] * BLOCK, [2] * BLOCK
    memory.keep([first + second], read([first + second]))
    assert recalled(memory, [[*second, 0], [*first, *second, 0]]) == [0, 32]


def test_the_least_recently_used_goes_first() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=3 * BLOCK_BYTES)
    rows = [[number] * BLOCK for number in range(3)]
    memory.keep(rows, read(rows))
    recalled(memory, [[*rows[0], 9]])
    memory.keep([[7] * BLOCK], read([[7] * BLOCK]))
    assert [memory.known(row) for row in rows] == [16, 0, 16]


def test_the_end_of_a_sequence_goes_before_its_beginning() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=3 * BLOCK_BYTES)
    long = list(range(48))
    memory.keep([long], read([long]))
    recalled(memory, [[*long, 9]])
    memory.keep([[7] * BLOCK], read([[7] * BLOCK]))
    assert memory.known(long) == 32


def test_a_memory_that_is_too_small_keeps_what_fits() -> None:
    for blocks in (0, 1, 2):
        memory = PrefixMemory(SHAPE, capacity_bytes=blocks * BLOCK_BYTES)
        rows = [list(range(start, start + 64)) for start in range(5)]
        memory.keep(rows, read(rows))
        assert memory.tokens <= memory.capacity_tokens == blocks * BLOCK
        recalled(memory, rows)


def test_forgotten_is_forgotten() -> None:
    memory = PrefixMemory(SHAPE, capacity_bytes=3 * BLOCK_BYTES)
    memory.keep([[1] * 48], read([[1] * 48]))
    memory.forget()
    assert recalled(memory, [[1] * 48]) == [0]
    assert memory.tokens == 0


def test_random_comings_and_goings() -> None:
    rng = random.Random(5)
    memory = PrefixMemory(SHAPE, capacity_bytes=6 * BLOCK_BYTES)
    for _ in range(150):
        rows = [[rng.randrange(2) for _ in range(16)] * rng.randint(1, 4) for _ in range(3)]
        rows = [row[: rng.randint(1, len(row))] for row in rows]
        recalled(memory, rows)
        memory.keep(rows, read(rows))
        assert memory.tokens <= memory.capacity_tokens
