"""Texts to vectors by feature hashing: no model, no data, the same numbers on every machine.

The embedder of the core. It knows words and pairs of words, not meanings: on text environments,
whose states repeat the same phrases, that is most of what retrieval needs. Embedders that know
meanings (`embed_static`, `embed_minilm`, `embed_http`) are extras behind the same protocol.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dreamgym.errors import ConfigError
from dreamgym.protocols import Vectors

_WORD = re.compile(r"[^\W_]+")
_LOG = tuple(1.0 + math.log(count) for count in range(1, 65))
_FUNCTION_WORDS = frozenset(
    """a an and are as at be by can do for from has have here i in is it its of on or see so some
    that the then there they this to was what which with would you your""".split()  # noqa: SIM905
)
"""Words that say little about a state; they count for less on their own."""

_FAINT = 0.25
_TITLE = 0.5
"""What the first line of several counts for on its own: it tends to name the place."""
_VOCABULARY = 1 << 20
"""Distinct features remembered before the memory of their hashes is emptied."""


class _Slots(dict[str, tuple[int, float]]):
    """Feature -> (dimension, signed weight), computed on first sight."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self._dimensions = dimensions

    def __missing__(self, feature: str) -> tuple[int, float]:
        raw = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
        weight = _FAINT if feature in _FUNCTION_WORDS else 1.0
        slot = ((raw >> 1) % self._dimensions, weight if raw & 1 else -weight)
        if len(self) >= _VOCABULARY:
            self.clear()
        self[feature] = slot
        return slot


class HashingEmbedder:
    """Words and word pairs, hashed with a sign into a fixed number of dimensions."""

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions < 16:
            raise ConfigError(f"{dimensions} dimensions are too few to hash into; take 256")
        self._dimensions = dimensions
        self._slots = _Slots(dimensions)

    @property
    def digest(self) -> str:
        """Name the algorithm and its size; both decide every number."""
        return f"hashing-1-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text; a text without words gets a fixed vector of its own."""
        sums = self._sums([_WORD.findall(text.lower()) for text in texts])
        titled = [number for number, text in enumerate(texts) if "\n" in text]
        if titled:
            firsts = (texts[number].partition("\n")[0].lower() for number in titled)
            titles = [[f"# {word}" for word in _WORD.findall(first)] for first in firsts]
            sums[titled] = unit_rows(sums[titled]) + _TITLE * unit_rows(self._sums(titles))
        return unit_rows(sums)

    def _sums(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Add up the features of each text, given as words."""
        places: list[int] = []
        weights: list[float] = []
        slots = self._slots
        for number, words in enumerate(texts):
            offset = number * self._dimensions
            counts = Counter(words)
            counts.update(map("%s %s".__mod__, pairwise(words)))
            for feature, count in counts.items():
                place, weight = slots[feature]
                places.append(offset + place)
                weights.append(weight if count == 1 else weight * _LOG[min(count, len(_LOG)) - 1])
        sums: NDArray[np.float64] = np.bincount(
            np.array(places, dtype=np.int64),
            weights=np.array(weights, dtype=np.float64),
            minlength=len(texts) * self._dimensions,
        ).astype(np.float64)
        return sums.reshape(len(texts), self._dimensions)


def unit_rows(rows: NDArray[Any]) -> Vectors:
    """Scale every row to length one; an all-zero row becomes the first axis."""
    exact = np.array(rows, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    empty = lengths == 0.0
    exact[empty, 0] = 1.0
    lengths[empty] = 1.0
    scaled: Vectors = (exact / lengths[:, None]).astype(np.float32)
    return scaled
