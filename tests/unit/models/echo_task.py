"""A task for training tests: say a word again, then end."""

from __future__ import annotations

import random

from dreamgym.models.samples import Sample


def echo(count: int, seed: int = 0) -> list[Sample]:
    """Make sequences that repeat their first word one to six times (span 1), then end (span 2)."""
    rng = random.Random(seed)
    samples = []
    for _ in range(count):
        word, size = rng.randrange(10, 50), rng.randint(1, 6)
        samples.append(Sample((word, 1, *[word] * size, 2), (0, 0, *[1] * size, 2)))
    return samples
