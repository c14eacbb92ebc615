"""Prompts are read once: equal ones, shared beginnings, and what was read before."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.models.llama import Llama
from dreamgym.models.prefix import BLOCK
from dreamgym.models.reading import Reader, chunks, shared_beginnings

COMMON = tuple(range(1, 65))


def reader_of(model: Llama, *, memory_bytes: int = 2**20, chunk_tokens: int = 64) -> Reader:
    return Reader(model, chunk_tokens=chunk_tokens, memory_bytes=memory_bytes, least_rows=16)


def check(model: Llama, reader: Reader, prompts: list[tuple[int, ...]]) -> None:
    """Read prompts; compare the scores of what follows with those of an uncached pass."""
    with torch.inference_mode():
        reading = reader.read(prompts, room=4)
        assert sorted(reading.order) == list(range(len(prompts)))
        for row, number in enumerate(reading.order):
            right = model(torch.tensor([prompts[number]]))[0, -1]
            torch.testing.assert_close(reading.logits[row, 0], right, atol=1e-4, rtol=1e-4)
            assert int(reading.cache.lengths[row]) == len(prompts[number])


@pytest.mark.parametrize("memory_bytes", [0, 2**20])
def test_prompts_of_all_lengths_are_read(llama: Llama, memory_bytes: int) -> None:
    prompts = [tuple((n * 7 + k) % 97 for k in range(n)) for n in (1, 2, 15, 16, 17, 40, 100, 3)]
    reader = reader_of(llama, memory_bytes=memory_bytes)
    check(llama, reader, prompts)
    check(llama, reader, [*prompts, *prompts[:3]])


def test_equal_prompts_are_read_once(llama: Llama) -> None:
    reader = reader_of(llama, memory_bytes=0)
    check(llama, reader, [COMMON[:20]] * 5)
    assert reader.tokens == 20


def test_a_shared_beginning_is_read_once(llama: Llama) -> None:
    reader = reader_of(llama)
    prompts = [(*COMMON, tail, tail) for tail in range(8)]
    check(llama, reader, prompts)
    assert reader.tokens == len(COMMON) + 8 * 2


def test_beginnings_may_share_a_beginning(llama: Llama) -> None:
    reader = reader_of(llama)
    tasks = [COMMON + (task,) * 32 for task in range(2)]
    check(llama, reader, [(*task, tail) for task in tasks for tail in range(4)])
    assert reader.tokens == len(COMMON) + 2 * 32 + 8


def test_an_episode_is_read_on_from_where_it_was(llama: Llama) -> None:
    reader = reader_of(llama)
    turns = [COMMON[:30], COMMON[:50], COMMON]
    seen = []
    for prompt in turns:
        check(llama, reader, [prompt])
        seen.append(reader.tokens)
    assert [after - before for before, after in pairwise(seen)] == [50 - 16, 64 - 48]


def test_a_long_memory_beside_a_long_new_prompt(llama: Llama) -> None:
    reader = reader_of(llama, chunk_tokens=4096)
    known = tuple(n % 97 for n in range(1, 161))
    check(llama, reader, [known])
    new = tuple(n * 5 % 97 for n in range(150))
    check(llama, reader, [(*known, 3), new, (7, 8)])
    assert reader.tokens == len(known) + 1 + len(new) + 2


def test_changed_weights_make_everything_forgotten(llama: Llama) -> None:
    reader = reader_of(llama)
    reader.notice_change()
    check(llama, reader, [COMMON])
    reader.notice_change()
    assert reader.memory.known(COMMON) == 64
    with torch.no_grad():
        llama.norm.weight.add_(0.0)
    reader.notice_change()
    assert reader.memory.known(COMMON) == 0


@given(lengths=st.lists(st.integers(1, 50), min_size=1), budget=st.integers(1, 200))
def test_chunks_cover_all_rows_within_the_budget(lengths: list[int], budget: int) -> None:
    lengths = sorted(lengths, reverse=True)
    ranges = list(chunks(lengths, budget=budget))
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges)][: len(ranges)]
    assert ranges[-1][1] == len(lengths)
    for start, stop in ranges:
        assert stop - start == 1 or (stop - start) * max(lengths[start:stop]) <= budget


def test_rows_of_unlike_length_are_read_apart() -> None:
    assert list(chunks([200, 198, 20, 19, 2], budget=4096)) == [(0, 2), (2, 5)]
    assert list(chunks([90, 80, 70], budget=4096)) == [(0, 3)]


def test_later_prompts_are_read_in_the_room_of_earlier_ones(llama: Llama) -> None:
    reader = reader_of(llama, memory_bytes=0)
    with torch.inference_mode():
        first = reader.read([COMMON, COMMON[:9]], room=4).cache.store.data_ptr()
        assert reader.read([COMMON[:9]], room=4).cache.store.data_ptr() == first
    check(llama, reader, [COMMON[3:30], COMMON[:9]])


def test_shared_beginnings_are_the_longest_in_whole_blocks() -> None:
    first = (1,) * BLOCK + (2,) * BLOCK
    second = (1,) * BLOCK + (3,) * BLOCK
    prompts = [(*first, 5), (*first, 6), (*second, 5), (*second, 6), (9,) * 40, first[:BLOCK]]
    assert shared_beginnings(prompts) == {first: 2, second: 2}
    assert shared_beginnings(prompts[2:]) == {second: 2}
    assert shared_beginnings([prompts[0], prompts[2]]) == {(1,) * BLOCK: 2}
    assert shared_beginnings([(1, 2), (1, 2)]) == {}


def test_what_may_follow_is_read_along(llama: Llama) -> None:
    reader = reader_of(llama)
    prompts, drafts = [COMMON[:20], COMMON[:9], COMMON[:20]], {COMMON[:20]: (5, 6, 7)}
    with torch.inference_mode():
        reading = reader.read(prompts, room=4, drafts=drafts)
        scores = {number: reading.logits[row] for row, number in enumerate(reading.order)}
        whole = llama(torch.tensor([(*COMMON[:20], 5, 6, 7)]))[0, 19:]
        alone = llama(torch.tensor([COMMON[:9]]))[0, -1]
    assert sorted(reading.cache.lengths[:3].tolist()) == [9, 20, 20]
    for number in (0, 2):
        torch.testing.assert_close(scores[number], whole, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(scores[1][0], alone, atol=1e-4, rtol=1e-4)
    assert reader.tokens == 29
