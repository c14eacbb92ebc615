"""From scores to the next token: greedy or drawn, each row by its own seed.

A row's draws depend on its seed and on how many tokens it has drawn, never on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dreamgym.models.requirement import torch


class Draws:
    """Uniform numbers for rows of different seeds: the n-th number of a seed is always the same."""

    _AHEAD = 64

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds = seeds
        self._sources: list[np.random.Generator] = []
        self._table = np.empty((len(seeds), 0))

    def at(self, steps: int | Sequence[int], rows: Sequence[int]) -> torch.Tensor:
        """Return each given row's number for a step, the same for all or one for each."""
        last = steps if isinstance(steps, int) else max(steps)
        if not self._sources:
            self._sources = [np.random.Generator(np.random.Philox(seed)) for seed in self._seeds]
        while last >= self._table.shape[1]:
            more = [source.random(self._AHEAD) for source in self._sources]
            self._table = np.concatenate([self._table, np.stack(more)], axis=1)
        return torch.from_numpy(self._table[list(rows), steps])


def pick(
    logits: torch.Tensor,
    *,
    temperature: torch.Tensor,
    top_p: torch.Tensor,
    uniform: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose one token per row of scores [rows, vocab]; return ids and log-probabilities.

    Temperature 0 takes the best token. Otherwise a token is drawn from the smallest set of best
    tokens whose probability reaches `top_p`. Log-probabilities are the model's at the row's
    temperature (at 1 where that is 0) over the whole vocabulary, as a trainer computes them again.
    """
    greedy = temperature <= 0
    scale = torch.where(greedy, torch.ones_like(temperature), temperature)
    logprobs = torch.log_softmax(logits / scale[:, None].to(logits.dtype), dim=-1)
    best = logits.argmax(dim=-1)
    if bool(greedy.all()):
        chosen = best
    else:
        chosen = torch.where(greedy, best, _draw(logprobs, top_p, uniform))
    return chosen, logprobs.gather(1, chosen[:, None])[:, 0]


def _draw(logprobs: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    # Double precision: a float32 sum over a large vocabulary may stop short of one.
    probs = logprobs.double().exp()
    chosen = _by_level(probs, uniform)
    cut = (top_p < 1).nonzero()[:, 0]
    if len(cut):
        ordered, order = probs[cut].sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        place = _by_level(ordered.masked_fill(before >= top_p[cut, None], 0.0), uniform[cut])
        chosen[cut] = order.gather(1, place[:, None])[:, 0]
    return chosen


def _by_level(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Return where each row's running total first passes its share `uniform` of the whole."""
    total = weights.cumsum(dim=-1)
    level = (uniform * total[:, -1])[:, None].contiguous()
    return torch.searchsorted(total, level, right=True)[:, 0].clamp_max(weights.shape[1] - 1)
