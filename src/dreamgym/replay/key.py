"""The retrieval key phi(s, a): one unit vector for a state and an action (in the paper's Eq. 4).

The paper compares steps by the cosine of phi(s, a) for any encoder phi. Here a text embedder's
vectors e(s) and e(a) are joined as `normalise(e(s) + w * R e(a))`, with R a fixed orthogonal map
that moves actions out of the states' way. The cosine of two keys is then close to
`(cos_s + w^2 cos_a) / (1 + w^2)`: both must fit, and w says how much the action weighs.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from dreamgym.errors import ConfigError, ReplayError, boundary
from dreamgym.protocols import Embedder, Vectors
from dreamgym.replay.embed import unit_rows

ACTION_WEIGHT = 1.0
"""With 1, state and action weigh the same."""

_REMEMBERED = 16_384
"""Texts whose vectors are kept: the next state of one step is the state of the following one."""


class KeyEncoder:
    """Turns (state, action) pairs to unit vectors of the embedder's own size."""

    def __init__(self, embedder: Embedder, *, action_weight: float = ACTION_WEIGHT) -> None:
        if not action_weight >= 0.0:
            raise ConfigError(f"action_weight {action_weight} must not be negative")
        self._embedder = embedder
        self._weight = action_weight
        self._order, self._signs = _orthogonal_map(embedder.dimensions)
        self._known: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def digest(self) -> str:
        """Name everything that decides a key: embedder, binding, weight."""
        return f"{self._embedder.digest}|bind-1|w={self._weight:g}"

    @property
    def dimensions(self) -> int:
        """The length of a key."""
        return self._embedder.dimensions

    def encode(self, states: Sequence[str], actions: Sequence[str]) -> Vectors:
        """Return one key per pair.

        Keys are rounded to half precision, as they are stored: an embedder whose last bits depend
        on the batch still gives the same text the same key.
        """
        if not states:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        vectors = self._texts([*states, *actions])
        bound = vectors[len(states) :][:, self._order] * self._signs
        keys = unit_rows(vectors[: len(states)] + self._weight * bound)
        return np.ascontiguousarray(keys.astype(np.float16), dtype=np.float32)

    def _texts(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        places: dict[str, list[int]] = {}
        with self._lock:
            for number, text in enumerate(texts):
                if text in self._known:
                    self._known.move_to_end(text)
                    vectors[number] = self._known[text]
                else:
                    places.setdefault(text, []).append(number)
        if places:
            with boundary(ReplayError, f"embedder {self._embedder.digest}"):
                rows = np.asarray(self._embedder.embed(list(places)), dtype=np.float32)
                if rows.shape != (len(places), self.dimensions) or not np.isfinite(rows).all():
                    wanted = f"{len(places)} x {self.dimensions} finite numbers"
                    raise ValueError(f"it gave {rows.shape} instead of {wanted}")
            for numbers, row in zip(places.values(), rows, strict=True):
                vectors[numbers] = row
            with self._lock:
                self._known.update(zip(places, rows, strict=True))
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return vectors


def _orthogonal_map(size: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Vectors]:
    """Return a fixed permutation of the axes and a sign for each, drawn from hashes."""
    drawn = [
        hashlib.blake2b(f"dreamgym key {size} {axis}".encode(), digest_size=16).digest()
        for axis in range(size)
    ]
    order = np.array(sorted(range(size), key=drawn.__getitem__), dtype=np.int64)
    signs = np.array([1.0 if raw[-1] & 1 else -1.0 for raw in drawn], dtype=np.float32)
    return order, signs
