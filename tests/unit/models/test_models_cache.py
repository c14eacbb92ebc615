"""Caches of keys and values: rows come and go, room grows, nothing is mixed up."""

from __future__ import annotations

import pytest
import torch

from dreamgym.models.cache import (
    FILLER,
    TRUNK,
    WORTH_A_CALL,
    CacheShape,
    KVCache,
    Part,
    Span,
)
from dreamgym.models.company import COLUMN_STEP

SHAPE = CacheShape(layers=2, heads=1, head_dim=2)


def put(cache: KVCache, tokens: torch.Tensor, counts: list[int]) -> None:
    """Write numbers [rows, tokens] as keys, their negatives as values, to every layer."""
    span = cache.span(tokens.shape[1])
    keys = tokens.float()[:, :, None, None].expand(-1, -1, 1, 2)
    for layer in range(2):
        seen = cache.put(layer, span, keys=keys, values=-keys)
        assert seen[0].shape == (cache.rows, 1, span.mask.shape[-1], 2)
    cache.lengths += torch.tensor(counts)


def held(cache: KVCache, row: int, layer: int = 1) -> list[float]:
    length = int(cache.lengths[row])
    keys = cache.store[layer, 0, row, :length, 0, 0]
    assert torch.equal(cache.store[layer, 1, row, :length, 0, 1], -keys)
    return keys.tolist()


@pytest.fixture
def cache() -> KVCache:
    cache = KVCache.empty(SHAPE, 2, columns=10)
    put(cache, torch.tensor([[1, 2, 3], [4, 5, 0]]), [3, 2])
    put(cache, torch.tensor([[6], [7]]), [1, 1])
    return cache


def test_every_row_grows_from_where_it_stands(cache: KVCache) -> None:
    assert [held(cache, row) for row in (0, 1)] == [[1, 2, 3, 6], [4, 5, 7]]


def test_selected_rows_are_copies_with_room(cache: KVCache) -> None:
    chosen = cache.select(torch.tensor([1, 1, 0]), columns=100)
    put(chosen, torch.tensor([[8], [9], [10]]), [1, 1, 1])
    assert [held(chosen, row) for row in range(3)] == [[4, 5, 7, 8], [4, 5, 7, 9], [1, 2, 3, 6, 10]]
    assert held(cache, 1) == [4, 5, 7]
    assert chosen.columns >= 100


def test_moved_rows_take_the_place_of_others(cache: KVCache) -> None:
    cache.move([1], [0])
    assert [held(cache, row) for row in (0, 1)] == [[4, 5, 7], [4, 5, 7]]
    put(cache, torch.tensor([[8], [9]]), [1, 1])
    assert [held(cache, row) for row in (0, 1)] == [[4, 5, 7, 8], [4, 5, 7, 9]]


def test_rows_look_at_about_as_many_columns_as_they_need() -> None:
    short = WORTH_A_CALL // 512
    cache = KVCache.empty(SHAPE, short + 3, columns=600)
    cache.lengths[:] = 40
    cache.lengths[0] = 570
    counts = [1] * (short - 1) + [3, 1, 2]
    span = cache.span(3, counts)
    assert span.mask.shape[-1] == 576
    long, few = Part(0, short - 1, 576, 1), Part(short - 1, short + 2, 64, 3)
    assert span.parts == (long, few), "a few short rows go with the long one, not many tokens"
    end = (short - 1) * 3
    assert span.real.tolist() == [*range(0, end, 3), *range(end, end + 4), end + 6, end + 7]
    cache.lengths[:] = 40
    cache.lengths[-2] = 570
    assert cache.span(1, [1] * (short + 3)).parts == (
        Part(0, short + 1, 64), Part(short + 1, short + 3, 576)
    )  # fmt: skip


def test_strewn_rows_are_rows_of_their_store() -> None:
    whole = KVCache.empty(SHAPE, 6, columns=40)
    cache = KVCache(whole.store, torch.tensor([3, 0, 4]), places=torch.tensor([1, 2, 5]))
    assert cache.rows == 3
    span = cache.span(2, [2, 1, 2])
    assert span.mask is None
    assert span.parts == (Part(0, 2, 32, 2, shift=1), Part(2, 3, 32, 2, shift=3))
    width = whole.columns
    assert span.slots.tolist() == [width + 3, width + 4, 2 * width, 2 * width + 1,
                                   5 * width + 4, 5 * width + 5]  # fmt: skip
    last = cache.only([2])
    assert (last.at.tolist(), last.lengths.tolist()) == ([5], [4])
    whole.store[:, :, 1, :3] = 7.0
    cache.copy([0], to=1)
    assert cache.lengths.tolist() == [3, 3, 4]
    assert bool((whole.store[:, :, 2, :3] == 7.0).all())
    assert not whole.store[:, :, 3:].any()


def test_copied_rows_stand_behind_the_others() -> None:
    cache = KVCache.empty(SHAPE, 4, columns=10)
    part = cache.part(0, 2)
    put(part, torch.tensor([[1, 2, 3], [4, 5, 0]]), [3, 2])
    cache.copy([1, 0], to=2)
    put(cache, torch.tensor([[6], [7], [8], [9]]), [1, 1, 1, 1])
    rows = [held(cache, row) for row in range(4)]
    assert rows == [[1, 2, 3, 6], [4, 5, 7], [4, 5, 8], [1, 2, 3, 9]]


def test_a_copy_may_hold_what_was_read_ahead() -> None:
    cache = KVCache.empty(SHAPE, 3, columns=2 * COLUMN_STEP)
    cache.lengths[:] = 3
    cache.store[:, :, 0, COLUMN_STEP + 1] = 7.0
    cache.copy([0], to=1)
    cache.copy([0], to=2, ahead=COLUMN_STEP)
    ahead = cache.store[:, :, :, COLUMN_STEP + 1]
    assert not ahead[:, :, 1].any()
    assert bool((ahead[:, :, 2] == 7.0).all())


def test_room_is_used_where_it_is_enough() -> None:
    room = torch.ones(2 * 2 * 2 * COLUMN_STEP * 2)
    assert KVCache.empty(SHAPE, 2, columns=9, room=room).store.data_ptr() == room.data_ptr()
    larger = KVCache.empty(SHAPE, 3, columns=9, room=room)
    assert larger.rows == 3
    assert not larger.store.any()


def test_a_part_writes_through(cache: KVCache) -> None:
    part = cache.part(1, 2)
    put(part, torch.tensor([[8]]), [1])
    assert [held(cache, row) for row in (0, 1)] == [[1, 2, 3, 6], [4, 5, 7, 8]]


def test_what_a_token_sees(cache: KVCache) -> None:
    span = cache.span(2)
    assert span.positions.tolist() == [[4, 5], [3, 4]]
    assert span.mask.shape[-1] % COLUMN_STEP == 0
    seen = (span.mask == 0).sum(-1)[:, 0]
    assert seen.tolist() == [[5, 6], [4, 5]]


def test_branches_see_what_came_before_and_themselves(cache: KVCache) -> None:
    offsets = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 2]])
    branch = torch.tensor([[0, 0, 1, -1], [0, 1, 1, 1]])
    span = cache.branches(offsets, branch)
    assert span.positions.tolist() == [[4, 5, 4, 4], [3, 3, 4, 5]]
    seen = [
        [sorted(torch.nonzero(span.mask[row, 0, token] == 0)[:, 0].tolist()) for token in range(4)]
        for row in (0, 1)
    ]
    past = [0, 1, 2, 3]
    assert seen[0] == [[*past, 4], [*past, 4, 5], [*past, 6], [*past, 7]]
    past = [0, 1, 2]
    assert seen[1] == [[*past, 3], [*past, 4], [*past, 4, 5], [*past, 4, 5, 6]]


def test_branches_see_the_new_tokens_before_all_of_them(cache: KVCache) -> None:
    offsets = torch.tensor([[0, 1, 2, 3, 2, 0]])
    branch = torch.tensor([[TRUNK, TRUNK, 0, 0, 1, FILLER]])
    span = cache.part(0, 1).branches(offsets, branch)
    assert span.positions.tolist() == [[4, 5, 6, 7, 6, 4]]
    seen = [torch.nonzero(span.mask[0, 0, token] == 0)[:, 0].tolist() for token in range(5)]
    past = [0, 1, 2, 3]
    assert seen == [
        [*past, 4], [*past, 4, 5], [*past, 4, 5, 6], [*past, 4, 5, 6, 7], [*past, 4, 5, 8],
    ]  # fmt: skip
    assert span.real.tolist() == [0, 1, 2, 3, 4]


def test_a_full_cache_says_so(cache: KVCache) -> None:
    with pytest.raises(ValueError, match="holds 32 tokens per row, 34 are needed"):
        cache.span(30)


def test_a_span_without_a_place_is_refused(cache: KVCache) -> None:
    keys = torch.zeros(2, 1, 1, 2)
    with pytest.raises(ValueError, match="without a place in the cache"):
        cache.put(0, Span(torch.zeros(2, 1), None), keys=keys, values=keys)


def test_memory_per_token() -> None:
    cache = KVCache.empty(SHAPE, 1, columns=COLUMN_STEP)
    assert SHAPE.bytes_per_token * COLUMN_STEP == cache.store.numel() * 4
