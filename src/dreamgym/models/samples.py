"""Training samples, and the batches that they go in: rows of like length under a token budget."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dreamgym.models.requirement import torch
from dreamgym.types import derive_seed

POOL = 32
"""Batches' worth of shuffled samples that are sorted by length together: enough to find rows of
like length, few enough that every epoch groups them anew."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sequence to learn from."""

    ids: tuple[int, ...]
    spans: tuple[int, ...]
    """For each token the kind of text it belongs to: 0 is read only, others are learnt."""

    def __post_init__(self) -> None:
        """Refuse tokens without a kind."""
        if len(self.ids) != len(self.spans):
            raise ValueError(f"{len(self.ids)} tokens but {len(self.spans)} span labels")


Samples = Sequence[Sample] | Callable[[int], Sequence[Sample]]
"""What to train on: the same in every epoch, or made anew for each, always as many. A function must
give the same samples whenever it is called with the same epoch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples side by side, filled up on the right."""

    ids: torch.Tensor
    """[rows, tokens]"""
    spans: torch.Tensor
    """[rows, tokens], 0 for filler."""
    tokens: int
    """How many are not filler."""

    @property
    def size(self) -> int:
        """How many tokens are computed, filler included."""
        return self.ids.numel()

    def pieces(self, budget: int) -> list[Batch]:
        """Cut into batches of at most so many tokens, at least one row each."""
        rows = max(1, budget // self.ids.shape[1])
        parts = zip(self.ids.split(rows), self.spans.split(rows), strict=True)
        return [Batch(ids, spans, 0) for ids, spans in parts]


def plan_epoch(lengths: Sequence[int], *, budget: int, seed: int, epoch: int) -> list[list[int]]:
    """Put samples into batches of like length, in an order that seed and epoch determine.

    A batch's rows, filled up to its longest, stay within the budget; a sample longer than the
    budget is a batch of its own.
    """
    rng = random.Random(derive_seed(seed, "epoch", epoch))
    order = list(range(len(lengths)))
    rng.shuffle(order)
    batches: list[list[int]] = []
    for pool in _pools(order, lengths, size=POOL * budget):
        batches += _cut(sorted(pool, key=lambda number: lengths[number]), lengths, budget=budget)
    rng.shuffle(batches)
    return batches


def _pools(order: list[int], lengths: Sequence[int], *, size: int) -> list[list[int]]:
    """Split samples into pools of about equal size, none smaller than half of `size`."""
    total = sum(lengths[number] for number in order)
    count = max(1, round(total / size))
    pools: list[list[int]] = [[] for _ in range(count)]
    for place, number in enumerate(order):
        pools[place * count // len(order)].append(number)
    return pools


def _cut(order: list[int], lengths: Sequence[int], *, budget: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for number in order:
        if batches and (len(batches[-1]) + 1) * lengths[number] <= budget:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches


def collate(samples: Sequence[Sample]) -> Batch:
    """Put samples side by side."""
    width = max(len(sample.ids) for sample in samples)
    ids = torch.zeros(len(samples), width, dtype=torch.long)
    spans = torch.zeros_like(ids)
    for row, sample in enumerate(samples):
        ids[row, : len(sample.ids)] = torch.tensor(sample.ids)
        spans[row, : len(sample.spans)] = torch.tensor(sample.spans)
    return Batch(ids, spans, sum(len(sample.ids) for sample in samples))
