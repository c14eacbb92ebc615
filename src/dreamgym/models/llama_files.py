"""Llama models on disk: their sizes, `config.json` and `model.safetensors` of Hugging Face.

Weights are kept fused in memory (query, key and value in one, gate and up in one) and apart on
disk, where transformers, vLLM and others look for them by name. In memory the two numbers that a
position turns together are neighbours; on disk they are half a head apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.files import write_atomically
from dreamgym.models.cache import CacheShape
from dreamgym.models.requirement import torch

Weights = dict[str, torch.Tensor]

_PLAIN = {
    "attention_norm.weight": "input_layernorm.weight",
    "out.weight": "self_attn.o_proj.weight",
    "feed_norm.weight": "post_attention_layernorm.weight",
    "down.weight": "mlp.down_proj.weight",
}
_FUSED = {
    "qkv.weight": [f"self_attn.{name}_proj.weight" for name in ("q", "k", "v")],
    "gate_up.weight": ["mlp.gate_proj.weight", "mlp.up_proj.weight"],
}
_TOP = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """The sizes of a model."""

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    inner: int
    """Width of the feed-forward part."""
    kv_heads: int = 0
    """Heads of keys and values; 0 means as many as query heads."""
    head_dim: int = 0
    """0 means hidden / heads."""
    positions: int = 2048
    """The longest sequence."""
    rope_theta: float = 10000.0
    norm_epsilon: float = 1e-5
    tied: bool = True
    """Whether the output uses the input embeddings."""

    def __post_init__(self) -> None:
        """Fill in what follows from the rest, and refuse what cannot be."""
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "head_dim", self.head_dim or self.hidden // self.heads)
        if self.heads % self.kv_heads:
            raise ConfigError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads")
        if self.head_dim % 2:
            raise ConfigError(f"head_dim {self.head_dim} is odd: positions rotate pairs")

    @property
    def cache(self) -> CacheShape:
        """What the model keeps per token."""
        return CacheShape(self.layers, self.kv_heads, self.head_dim)


def describe(shape: LlamaShape, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `config.json` of a model: its sizes, and its settings beyond them."""
    sizes = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.inner,
        "max_position_embeddings": shape.positions,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "rms_norm_eps": shape.norm_epsilon,
        "tie_word_embeddings": shape.tied,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "dtype": "float32",
    }
    return {**settings, **sizes}


def read_config(folder: Path) -> dict[str, Any]:
    """Read a model's `config.json`."""
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{folder} holds no model: there is no config.json") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object")
    return content


def read_shape(config: Mapping[str, Any]) -> LlamaShape | None:
    """Return the sizes in a `config.json`, or None where `Llama` does not cover the model."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    plain_rope = rope.get("rope_type", rope.get("type", "default")) == "default"
    biased = config.get("attention_bias") or config.get("mlp_bias")
    silu = config.get("hidden_act", "silu") == "silu"
    if config.get("model_type") != "llama" or biased or not plain_rope or not silu:
        return None
    return LlamaShape(
        vocab_size=config["vocab_size"],
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        inner=config["intermediate_size"],
        kv_heads=config.get("num_key_value_heads") or 0,
        head_dim=config.get("head_dim") or 0,
        positions=config.get("max_position_embeddings", 2048),
        rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
        norm_epsilon=config.get("rms_norm_eps", 1e-6),
        tied=config.get("tie_word_embeddings", False),
    )


def to_hugging_face(weights: Weights, shape: LlamaShape) -> Weights:
    """Return the weights under the names and in the shapes of `LlamaForCausalLM`."""
    wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {"qkv.weight": [wide, narrow, narrow], "gate_up.weight": [shape.inner, shape.inner]}
    found = {theirs: weights[ours] for ours, theirs in _TOP.items()}
    if not shape.tied:
        found["lm_head.weight"] = weights["head.weight"]
    for layer in range(shape.layers):
        ours, theirs = f"blocks.{layer}.", f"model.layers.{layer}."
        for name, target in _PLAIN.items():
            found[theirs + target] = weights[ours + name]
        for name, targets in _FUSED.items():
            parts = list(weights[ours + name].split(sizes[name]))
            if name == "qkv.weight":
                parts[:2] = [_pairs_apart(part, shape.head_dim) for part in parts[:2]]
            found.update({theirs + to: part for to, part in zip(targets, parts, strict=True)})
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def from_hugging_face(weights: Mapping[str, torch.Tensor], shape: LlamaShape) -> Weights:
    """Return the weights of a `LlamaForCausalLM` under our names, fused, as 32-bit floats."""
    found = {ours: weights[theirs] for ours, theirs in _TOP.items()}
    if not shape.tied:
        found["head.weight"] = weights["lm_head.weight"]
    for layer in range(shape.layers):
        ours, theirs = f"blocks.{layer}.", f"model.layers.{layer}."
        for name, source in _PLAIN.items():
            found[ours + name] = weights[theirs + source]
        for name, sources in _FUSED.items():
            parts = [weights[theirs + source] for source in sources]
            if name == "qkv.weight":
                parts[:2] = [_pairs_together(part, shape.head_dim) for part in parts[:2]]
            found[ours + name] = torch.cat(parts)
    return {name: tensor.float() for name, tensor in found.items()}


def _pairs_apart(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    return weight.view(-1, head_dim // 2, 2, weight.shape[1]).transpose(1, 2).flatten(0, 2)


def _pairs_together(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    return weight.view(-1, 2, head_dim // 2, weight.shape[1]).transpose(1, 2).flatten(0, 2)


def write_llama(
    folder: Path, weights: Weights, *, shape: LlamaShape, settings: Mapping[str, Any]
) -> None:
    """Write `model.safetensors`, then `config.json`: a folder with a config is a whole model."""
    from safetensors.torch import save

    data = save(to_hugging_face(weights, shape), metadata={"format": "pt"})
    write_atomically(folder / "model.safetensors", data)
    write_atomically(folder / "config.json", json.dumps(describe(shape, settings), indent=2))


def read_weights(folder: Path) -> Weights:
    """Read every `*.safetensors` file of a folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ConfigError(f"{folder} holds no weights: there is no *.safetensors file")
    found: Weights = {}
    for file in files:
        try:
            found.update(load_file(file))
        except SafetensorError as error:
            raise ConfigError(f"{file} is damaged: {error}") from error
    return found
