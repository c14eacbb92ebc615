"""Any Hugging Face causal language model behind our small interface, full or with LoRA adapters.

transformers and peft are imported when something is loaded. Models with sliding windows or without
plain keys and values are refused, and so is one whose scores are not a linear view of its hidden
states: a check on loading compares them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.models.cache import CacheShape, KVCache, Span
from dreamgym.models.requirement import load, nn, torch
from dreamgym.models.tokenizer import plain_chat
from dreamgym.types import Message

ADAPTERS = "adapters"
"""The folder of a model's adapters, inside that of the model."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Train small matrices beside the weights, not the weights."""

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
    seed: int = 0
    """Of their first weights."""


class HfModel(nn.Module):
    """A transformers model, perhaps with adapters."""

    def __init__(self, inner: Any) -> None:
        """Wrap a `PreTrainedModel` or a `PeftModel`, in 32-bit floats."""
        super().__init__()
        self.inner = inner
        self._base = inner.get_base_model() if _has_adapters(inner) else inner
        config = self._base.config.get_text_config()
        _refuse_windows(config)
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        self._shape = CacheShape(config.num_hidden_layers, heads, width)
        self._config = config
        self._transport = _make_transport()
        self._check_head()

    @property
    def vocab_size(self) -> int:
        """How many token ids the model knows."""
        return int(self._config.vocab_size)

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return int(self._config.hidden_size)

    @property
    def positions(self) -> int:
        """The longest sequence."""
        return int(self._config.max_position_embeddings)

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""
        return self._shape

    def hidden(
        self, ids: torch.Tensor, *, cache: KVCache | None = None, span: Span | None = None
    ) -> torch.Tensor:
        """Return the last hidden states: see `CausalLM.hidden`."""
        if span is None and cache is not None:
            span = cache.span(ids.shape[1])
        if ids.shape[1] > self.positions:
            raise ConfigError(f"{ids.shape[1]} tokens, but the model reads {self.positions}")
        places: dict[str, Any] = {}
        if span is not None:
            places = {"position_ids": span.positions, "attention_mask": span.whole_mask}
        if cache is not None and span is not None:
            places["past_key_values"] = self._transport(cache, span)
        body = self._base.get_decoder()
        out = body(input_ids=ids, use_cache=cache is not None, **places)
        hidden: torch.Tensor = out.last_hidden_state
        if span is None or span.asked is None:
            return hidden
        return hidden[torch.arange(len(hidden))[:, None], span.asked]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for hidden states."""
        return self._base.get_output_embeddings()(hidden)  # type: ignore[no-any-return]

    def forward(self, ids: torch.Tensor, *, cache: KVCache | None = None) -> torch.Tensor:
        """Return the scores of every next token, [rows, tokens, vocab]."""
        return self.logits(self.hidden(ids, cache=cache))

    def save(self, folder: Path) -> None:
        """Write the model; adapters go by themselves into `adapters/`, and into the weights.

        So the folder serves anywhere, and the adapters can be had without the weights.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not _has_adapters(self.inner):
            self.inner.save_pretrained(str(folder))
            return
        self.inner.save_pretrained(str(folder / ADAPTERS))
        whole = copy.deepcopy(self.inner).merge_and_unload()
        whole.save_pretrained(str(folder))

    def merged(self) -> HfModel:
        """Return a model whose weights have taken up the adapters. These are gone afterwards."""
        return HfModel(self.inner.merge_and_unload()) if _has_adapters(self.inner) else self

    def _check_head(self) -> None:
        ids = torch.arange(4)[None] % self.vocab_size
        was_training = self.training
        self.eval()
        with torch.no_grad():
            ours, theirs = self(ids), self._base(input_ids=ids).logits
        self.train(was_training)
        if not torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4):
            raise ConfigError(
                f"{type(self._base).__name__} changes its scores after the last layer: "
                "this architecture is not covered"
            )


def load_hf_model(folder: Path, *, lora: Lora | None = None) -> HfModel:
    """Load a model directory, or one of adapters that names its base; put new adapters on it."""
    transformers = load("transformers")
    settings = {"dtype": torch.float32, "local_files_only": True}
    if (folder / "adapter_config.json").exists():
        peft = load("peft", extra="lora")
        adapted = peft.AutoPeftModelForCausalLM.from_pretrained(
            str(folder), is_trainable=True, **settings
        )
        return HfModel(adapted)
    inner = transformers.AutoModelForCausalLM.from_pretrained(str(folder), **settings)
    if lora is None:
        return HfModel(inner)
    peft = load("peft", extra="lora")
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(lora.seed)
        return HfModel(peft.get_peft_model(inner, config))


class HfTokenizer:
    """A transformers tokenizer."""

    def __init__(self, folder: Path) -> None:
        """Load the tokenizer of a model directory."""
        self._inner: Any = load("transformers").AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True
        )
        if self._inner.eos_token_id is None:
            raise ConfigError(f"the tokenizer in {folder} has no token that ends an answer")

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""
        return len(self._inner)

    @property
    def pad_id(self) -> int:
        """The filler; never part of a text."""
        pad = self._inner.pad_token_id
        return int(self._inner.eos_token_id if pad is None else pad)

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        return frozenset({int(self._inner.eos_token_id)})

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, and nothing added to it."""
        return list(self._inner.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of ids."""
        return str(self._inner.decode(list(ids), skip_special_tokens=skip_special))

    def prompt_ids(self, prompt: str | Sequence[Message]) -> list[int]:
        """Return the ids of a prompt, a chat by the tokenizer's template where it has one."""
        if not isinstance(prompt, str) and self._inner.chat_template:
            turns = [{"role": message.role, "content": message.content} for message in prompt]
            return self.encode(
                self._inner.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            )
        text = prompt if isinstance(prompt, str) else plain_chat(prompt)
        opening = self._inner.encode("", add_special_tokens=True)
        first = self._inner.bos_token_id
        return [*([first] if first is not None and first in opening else []), *self.encode(text)]

    def save(self, folder: Path) -> None:
        """Write it in Hugging Face format."""
        self._inner.save_pretrained(str(folder))


def _has_adapters(inner: Any) -> bool:
    return hasattr(inner, "peft_config") and hasattr(inner, "get_base_model")


def _refuse_windows(config: Any) -> None:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise ConfigError(f"layers of kind {sorted(kinds)}: only full attention is covered")


def _make_transport() -> Any:
    """Return the class that hands our cache to transformers, which insists on its own base."""
    base = load("transformers.cache_utils").Cache

    class Transport(base):  # type: ignore[misc, valid-type]
        def __init__(self, cache: KVCache, span: Span) -> None:
            super().__init__(layers=[])
            self._held, self._span = cache, span

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            layer_idx: int,
            *_: Any,
            **__: Any,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return self._held.put(
                layer_idx,
                self._span,
                keys=key_states.transpose(1, 2),
                values=value_states.transpose(1, 2),
            )

        def get_seq_length(self, layer_idx: int = 0) -> int:
            return int(self._held.lengths.max())

    return Transport
