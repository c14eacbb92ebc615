"""Batches of samples: like lengths together, little filler, an order that can be repeated."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.models.samples import Sample, collate, plan_epoch


@given(
    lengths=st.lists(st.integers(1, 80), min_size=1, max_size=60),
    budget=st.integers(1, 300),
    epoch=st.integers(0, 3),
)
def test_every_sample_is_in_one_batch_within_the_budget(
    lengths: list[int], budget: int, epoch: int
) -> None:
    batches = plan_epoch(lengths, budget=budget, seed=1, epoch=epoch)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[number] for number in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget


@pytest.mark.parametrize("budget", [1200, 2400, 9600])
@pytest.mark.parametrize("kind", ["even", "skewed", "two humps"])
def test_less_than_a_tenth_is_filler(kind: str, budget: int) -> None:
    rng = random.Random(0)
    draw = {
        "even": lambda: rng.randint(20, 400),
        "skewed": lambda: min(900, int(rng.lognormvariate(4.5, 0.6)) + 5),
        "two humps": lambda: int(rng.choice([rng.gauss(60, 5), rng.gauss(350, 40)])),
    }[kind]
    lengths = [draw() for _ in range(3000)]
    for epoch in range(2):
        batches = plan_epoch(lengths, budget=budget, seed=0, epoch=epoch)
        size = sum(len(batch) * max(lengths[n] for n in batch) for batch in batches)
        assert 1 - sum(lengths) / size < 0.1


def test_epochs_differ_and_repeat() -> None:
    lengths = [random.Random(n).randint(5, 50) for n in range(100)]
    first, second, again = (
        plan_epoch(lengths, budget=200, seed=0, epoch=epoch) for epoch in (0, 1, 0)
    )
    assert first == again != second
    assert first != plan_epoch(lengths, budget=200, seed=1, epoch=0)
    assert [sorted(batch) for batch in first] != [sorted(batch) for batch in second]


def test_long_and_short_batches_are_mixed() -> None:
    batches = plan_epoch(list(range(1, 500)), budget=2000, seed=0, epoch=0)
    longest = [max(batch) for batch in batches]
    assert longest != sorted(longest)


def test_samples_side_by_side() -> None:
    batch = collate([Sample((5, 6, 7), (0, 1, 2)), Sample((8,), (1,))])
    assert batch.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch.spans.tolist() == [[0, 1, 2], [1, 0, 0]]
    assert (batch.tokens, batch.size) == (4, 6)
    pieces = batch.pieces(3)
    assert [piece.ids.tolist() for piece in pieces] == [[[5, 6, 7]], [[8, 0, 0]]]
    assert torch.equal(torch.cat([piece.spans for piece in pieces]), batch.spans)


def test_tokens_without_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="3 tokens but 2 span labels"):
        Sample((1, 2, 3), (0, 1))
