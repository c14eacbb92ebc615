"""How alike two states are: the same text, the same state, the same words, the same meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dreamgym.protocols import Embedder
from dreamgym.states import body_of

_TOKEN = re.compile(r"\w+|[^\w\s]")


def same_state(one: str, other: str) -> bool:
    """Say whether two states agree in all but what was said to the last action."""
    return body_of(one) == body_of(other)


def token_f1(told: str, true: str) -> float:
    """Return the F1 of the words of one text against those of another, repeats counted."""
    ours, theirs = Counter(_TOKEN.findall(told)), Counter(_TOKEN.findall(true))
    total = ours.total() + theirs.total()
    return 2.0 * (ours & theirs).total() / total if total else 1.0


def similarities(pairs: Sequence[tuple[str, str]], embedder: Embedder) -> list[float]:
    """Return the cosine of the vectors of each pair of texts; equal texts are not embedded."""
    texts = sorted({text for one, other in pairs if one != other for text in (one, other)})
    if not texts:
        return [1.0] * len(pairs)
    vectors = dict(zip(texts, np.asarray(embedder.embed(texts)), strict=True))
    return [
        1.0 if one == other else float(np.dot(vectors[one], vectors[other])) for one, other in pairs
    ]
