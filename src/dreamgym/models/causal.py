"""The small interface behind which every local model stands: ours, and any Hugging Face one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from dreamgym.models.cache import CacheShape, KVCache, Span
from dreamgym.models.requirement import nn, torch


class CausalLM(Protocol):
    """A language model: token ids in, scores of the next token out. Also a `torch.nn.Module`."""

    @property
    def vocab_size(self) -> int:
        """How many token ids the model knows."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""

    @property
    def positions(self) -> int:
        """The longest sequence."""

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""

    def hidden(
        self, ids: torch.Tensor, *, cache: KVCache | None = None, span: Span | None = None
    ) -> torch.Tensor:
        """Return the last hidden states [rows, tokens, hidden] of ids [rows, tokens].

        Each token sees those before it; rows may be padded on the right. With a cache, the tokens
        follow those it holds and are added to it; the caller then counts them in `cache.lengths`.
        A `span` says otherwise where tokens stand and what they see; where it asks for one token of
        each row, the result is [rows, 1, hidden].
        """

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for hidden states [.., hidden]."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the weights."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the weights with their names."""

    def train(self, mode: bool = True) -> object:
        """Switch training behaviour, such as dropout, on or off."""

    def save(self, folder: Path) -> None:
        """Write the model in Hugging Face format."""
