"""Local models: tokenizers, small Llamas from scratch, Hugging Face models, decoding, fine-tuning.

The only home of torch, transformers and peft. Names load on first use, so that importing this
package needs none of them; whoever uses one without its packages is told what to install.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Answer": "decode",
    "CausalLM": "causal",
    "Choice": "scoring",
    "Decoder": "decode",
    "LocalLLM": "as_llm",
    "Query": "decode",
    "Sample": "samples",
    "SftPlan": "sft_plan",
    "fit": "sft",
    "load_model": "load",
    "load_smollm2": "smollm2",
    "load_tokenizer": "load",
    "make_tiny": "tiny",
    "train_word_tokenizer": "tokenizer",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
