"""Small Llama models from scratch: the preset family, and how their weights begin."""

from __future__ import annotations

import math
from dataclasses import replace

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.requirement import nn, torch

PRESETS = {
    "1m": LlamaShape(vocab_size=0, hidden=128, layers=4, heads=4, inner=384),
    "3m": LlamaShape(vocab_size=0, hidden=192, layers=6, heads=6, inner=576),
    "10m": LlamaShape(vocab_size=0, hidden=320, layers=8, heads=10, inner=960),
}


def make_tiny(preset: str, vocab_size: int, *, seed: int, positions: int = 2048) -> Llama:
    if preset not in PRESETS:
        raise ConfigError(f"no preset '{preset}'.{did_you_mean(preset, PRESETS)}")
    shape = replace(PRESETS[preset], vocab_size=vocab_size, positions=positions)
    model = Llama(shape)
    init(model, seed)
    return model


def init(model, seed, std=0.02):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() < 2:
                p.fill_(1.0)
            else:
                s = (
                    std / math.sqrt(2 * model.shape.layers)
                    if name.endswith(("out.weight", "down.weight"))
                    else std
                )
                p.normal_(0, s, generator=g)
