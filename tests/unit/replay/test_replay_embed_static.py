"""The static embedder, where its weights are installed."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from dreamgym.errors import MissingDependency
from dreamgym.replay.embed_static import StaticEmbedder

present = all(find_spec(name) for name in ("wordllama", "safetensors", "tokenizers"))
needs_weights = pytest.mark.skipif(not present, reason="extra `static` is not installed")


@needs_weights
def test_it_knows_what_is_alike():
    embedder = StaticEmbedder()
    rows = embedder.embed(["The cat sits.", "A kitten is resting.", "Stock prices fell.", ""])
    assert rows.shape == (4, embedder.dimensions)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2
    assert (embedder.embed(["The cat sits."])[0] == rows[0]).all()
    assert embedder.digest == StaticEmbedder().digest


@pytest.mark.skipif(present, reason="extra `static` is installed")
def test_without_the_weights_the_fix_is_named():
    with pytest.raises(MissingDependency, match=r"pip install .*\[static\]'"):
        StaticEmbedder()
