"""Small models for tests: random, but with opinions strong enough that answers differ."""

from __future__ import annotations

import torch

from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape


def random_llama(seed: int = 0, **sizes: object) -> Llama:
    """Make a model of a few thousand weights."""
    shape = {"vocab_size": 97, "hidden": 32, "layers": 2, "heads": 4, "inner": 64}
    model = Llama(LlamaShape(**{**shape, "positions": 256, **sizes}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3, generator=generator)
    return model.eval()
