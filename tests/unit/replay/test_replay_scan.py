"""Exact search against the obvious way."""

from __future__ import annotations

import numpy as np
import pytest

from dreamgym.replay.scan import Block, scan


def make(seed: int, sizes: list[int], dead_share: float = 0.0):
    rng = np.random.default_rng(seed)
    total = sum(sizes)
    # Few distinct vectors, so that many scores are equal.
    vectors = rng.integers(-2, 3, size=(total, 8)).astype(np.float32)
    vectors[:, 0] += 3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors.astype(np.float16).astype(np.float32)
    rows = rng.permutation(total) + 1
    blocks, start = [], 0
    for size in sizes:
        mine = np.sort(rows[start : start + size])
        dead = np.flatnonzero(rng.random(size) < dead_share)
        blocks.append(Block(mine, vectors[start : start + size], dead))
        start += size
    return blocks, vectors[rng.integers(total, size=40)]


def obvious(blocks, query, k, skip):
    found = []
    for block in blocks:
        for place, (row, vector) in enumerate(zip(block.rows, block.vectors, strict=True)):
            if place not in block.dead and row not in skip:
                score = float((vector.astype(np.float64) * query).sum())
                found.append((-score, int(row)))
    return [(row, -score) for score, row in sorted(found)[:k]]


@pytest.mark.parametrize(
    ("sizes", "k", "dead"),
    [([5], 8, 0.0), ([0, 30, 1], 3, 0.3), ([700, 2500], 8, 0.1), ([64 * 4 * 8 + 5], 8, 0.0)],
)
def test_the_same_rows_in_the_same_order(sizes, k, dead):
    blocks, queries = make(len(sizes), sizes, dead)
    rng = np.random.default_rng(1)
    skip = [rng.integers(1, sum(sizes) + 1, size=rng.integers(0, 9)) for _ in queries]
    found = scan(blocks, queries, k=k, skip=skip)
    for query, skipped, answer in zip(queries, skip, found, strict=True):
        assert [tuple(hit) for hit in answer] == obvious(blocks, query, k, set(skipped.tolist()))
        (alone,) = scan(blocks, query[None], k=k, skip=[skipped])
        assert alone == answer


def test_nothing_to_search():
    queries = np.ones((2, 8), dtype=np.float32)
    nothing = np.empty(0, dtype=np.int64)
    assert scan([], queries, k=3, skip=[nothing] * 2) == [[], []]
    blocks, _ = make(0, [4], dead_share=2.0)
    assert scan(blocks, queries, k=3, skip=[nothing] * 2) == [[], []]
