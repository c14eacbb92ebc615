"""Small Llama models from scratch: the preset family, and how their weights begin."""

from __future__ import annotations

import math
from dataclasses import replace

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.requirement import torch

PRESETS = {
    "1m": LlamaShape(vocab_size=0, hidden=128, layers=4, heads=4, inner=384),
    "3m": LlamaShape(vocab_size=0, hidden=192, layers=6, heads=6, inner=576),
    "10m": LlamaShape(vocab_size=0, hidden=320, layers=8, heads=10, inner=960),
}
"""About 1, 3 and 10 million parameters with the vocabulary of one environment."""

_SPREAD = 0.02
"""Standard deviation of fresh weights; what writes into the residual stream starts smaller."""


def make_tiny(preset: str, vocab_size: int, *, seed: int, positions: int = 2048) -> Llama:
    """Make an untrained model of a preset; the same seed gives the same weights."""
    if preset not in PRESETS:
        raise ConfigError(f"no preset '{preset}'.{did_you_mean(preset, PRESETS)}")
    model = Llama(replace(PRESETS[preset], vocab_size=vocab_size, positions=positions))
    dice = torch.Generator().manual_seed(seed)
    writing = _SPREAD / math.sqrt(2 * model.shape.layers)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.dim() < 2:
                weights.fill_(1.0)
            else:
                into_stream = name.endswith(("out.weight", "down.weight"))
                weights.normal_(0, writing if into_stream else _SPREAD, generator=dice)
    return model
