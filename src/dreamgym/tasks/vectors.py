"""Vectors of task texts, each embedded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dreamgym.protocols import Embedder, Vectors


class TextVectors:
    """An embedder that remembers."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def rows(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text.

        Rounded to half precision: an embedder whose last bits depend on what else it embeds still
        gives a run that was resumed the same vectors.
        """
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            found = self._embedder.embed(missing).astype(np.float16).astype(np.float32)
            self._known.update(zip(missing, found, strict=True))
        if not texts:
            return np.zeros((0, self._embedder.dimensions), dtype=np.float32)
        return np.stack([self._known[text] for text in texts])
