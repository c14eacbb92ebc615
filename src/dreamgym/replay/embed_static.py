"""Texts to vectors by averaging static word vectors: knows synonyms, needs no network, fast.

Reads the weights that the `wordllama` package ships, directly: its own loader wants a hub. Extra
`static`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command
from dreamgym.protocols import Vectors
from dreamgym.replay.embed import unit_rows
from dreamgym.replay.weights import file_digest, package_file

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class StaticEmbedder:
    """The mean of the vectors of a text's tokens."""

    def __init__(self) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingDependency(f"{error}: {install_command('static')}") from error
        weights = package_file("wordllama", _WEIGHTS, extra="static")
        tokenizer = package_file("wordllama", _TOKENIZER, extra="static")
        (table,) = load_file(weights).values()
        self._table: Vectors = np.asarray(table, dtype=np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._digest = f"static-{file_digest(weights)}-{file_digest(tokenizer)}"

    @property
    def digest(self) -> str:
        """Name the content of the weights and of the tokenizer."""
        return self._digest

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._table.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        sums = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        for number, tokens in enumerate(encoded):
            if tokens.ids:
                sums[number] = self._table[tokens.ids].sum(axis=0)
        return unit_rows(sums)
