"""Small Llama models from scratch: the preset family.

Their shapes and first weights were chosen by experiment on a task of looking pages up in the
context: see `start.py`, and `benchmarks/copying.py` to repeat it.
"""

from __future__ import annotations

from dataclasses import replace

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.start import set_start_weights

PRESETS = {
    "1m": LlamaShape(1, hidden=128, layers=4, heads=4, inner=384, rope_theta=1e6),
    "3m": LlamaShape(1, hidden=192, layers=6, heads=6, inner=576, rope_theta=1e6),
    "10m": LlamaShape(1, hidden=320, layers=8, heads=10, inner=960, rope_theta=1e6),
}
"""Sizes by name; with a vocabulary of about a thousand, the name is the number of parameters."""

END_TOKENS = {"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
"""For `config.json`: where `train_word_tokenizer` puts them."""


def make_tiny(
    preset: str, vocab_size: int, *, seed: int, positions: int = 2048, copying: bool = True
) -> Llama:
    """Make a model of a preset with its first weights.

    Args:
        preset: one of `PRESETS`.
        vocab_size: of the tokenizer.
        seed: the same seed gives the same weights.
        positions: the longest sequence.
        copying: begin with a circuit that copies: see `start.py`.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset '{preset}'.{did_you_mean(preset, PRESETS)}")
    shape = replace(PRESETS[preset], vocab_size=vocab_size, positions=positions)
    model = Llama(shape, settings=END_TOKENS)
    set_start_weights(model, seed=seed, copying=copying)
    return model
