"""Vectors of texts: each asked for once, in any order."""

import numpy as np

from dreamgym.replay.embed import HashingEmbedder
from dreamgym.tasks.vectors import TextVectors


class Counting(HashingEmbedder):
    def __init__(self):
        super().__init__()
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        return super().embed(texts)


def test_every_text_is_embedded_once():
    embedder = Counting()
    vectors = TextVectors(embedder)
    first = vectors.rows(["a cup", "a map", "a cup"])
    assert vectors.rows([]).shape == (0, embedder.dimensions)
    assert np.array_equal(vectors.rows(["a map", "a lamp"])[0], first[1])
    assert np.array_equal(first[0], first[2])
    assert embedder.asked == ["a cup", "a map", "a lamp"]
    assert np.allclose(np.linalg.norm(first, axis=1), 1.0, atol=1e-3)
