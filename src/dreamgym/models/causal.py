"""The small interface behind which every local model stands: ours, and any Hugging Face one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from dreamgym.models.cache import CacheShape, KVCache, Span
from dreamgym.models.requirement import nn, torch


class CachedLM(Protocol):
    """What it takes to read and decode: token ids in, scores of the next token out."""

    @property
    def positions(self) -> int:
        """The longest sequence."""

    @property
    def cache_shape(self) -> CacheShape:
        """What the model keeps per token."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the weights."""

    def hidden(self, ids: torch.Tensor, *, cache: KVCache, span: Span) -> torch.Tensor:
        """Return the last hidden states [rows, tokens, hidden] of ids [rows, tokens].

        The tokens stand where the span says and are added to the cache; the caller then counts them
        in `cache.lengths`. Where the span asks for some tokens of each row, the result is
        [rows, some, hidden]. What comes out for filler means nothing.
        """

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next token for hidden states [.., hidden]."""


class CausalLM(CachedLM, Protocol):
    """A whole language model. Also a `torch.nn.Module`."""

    @property
    def vocab_size(self) -> int:
        """How many token ids the model knows."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""

    def hidden(
        self, ids: torch.Tensor, *, cache: KVCache | None = None, span: Span | None = None
    ) -> torch.Tensor:
        """Return the last hidden states [rows, tokens, hidden] of ids [rows, tokens].

        Each token sees those before it; rows may be padded on the right. With a cache, the tokens
        follow those it holds and are added to it. A `span` says otherwise.
        """

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the weights with their names."""

    def train(self, mode: bool = True) -> object:
        """Switch training behaviour, such as dropout, on or off."""

    def save(self, folder: Path) -> None:
        """Write the model in Hugging Face format."""
