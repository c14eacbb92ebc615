"""Model directories of any origin, and the fastest way to run what is in them."""

from __future__ import annotations

import json
from pathlib import Path

from dreamgym.errors import ConfigError
from dreamgym.models.causal import CausalLM
from dreamgym.models.hf import HfTokenizer, Lora, load_hf_model
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import from_hugging_face, read_config, read_shape, read_weights
from dreamgym.models.tokenizer import Tokenizer, load_word_tokenizer


def load_model(folder: Path, *, lora: Lora | None = None) -> CausalLM:
    """Load a Hugging Face directory: Llamas by our own module, all others by transformers.

    Args:
        folder: with `config.json` and `*.safetensors`, or with LoRA adapters.
        lora: train adapters instead of the weights; this always goes through transformers.
    """
    if lora is not None or (folder / "adapter_config.json").exists():
        return load_hf_model(folder, lora=lora)
    config = read_config(folder)
    shape = read_shape(config)
    return load_hf_model(folder) if shape is None else load_llama(folder)


def load_llama(folder: Path) -> Llama:
    """Load a model of the Llama architecture by our own module."""
    config = read_config(folder)
    shape = read_shape(config)
    if shape is None:
        raise ConfigError(f"{folder} holds no plain Llama (model_type {config.get('model_type')})")
    model = Llama(shape, settings=config)
    model.load_state_dict(from_hugging_face(read_weights(folder), shape))
    return model


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a model directory."""
    settings = folder / "tokenizer_config.json"
    if not settings.exists():
        raise ConfigError(f"{folder} holds no tokenizer: there is no tokenizer_config.json")
    if json.loads(settings.read_text(encoding="utf-8")).get("dreamgym") == "words":
        return load_word_tokenizer(folder)
    return HfTokenizer(folder)
