"""How likely given answers are: the candidates of a prompt, read side by side after it.

The prompt is read once. Its candidates then stand in one row, each seeing the prompt and itself but
not its neighbours, so that the prompt's keys and values are passed over once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dreamgym.models.causal import CachedLM
from dreamgym.models.reading import Reader
from dreamgym.models.requirement import torch


@dataclass(frozen=True, slots=True)
class Choice:
    """A prompt and the answers to be compared."""

    ids: tuple[int, ...]
    candidates: tuple[tuple[int, ...], ...]


Scores = list[tuple[float, ...]]
"""For each candidate, the log-probability of each of its tokens."""


def score_choices(
    model: CachedLM, reader: Reader, asked: Sequence[Choice], *, chunk_tokens: int
) -> list[Scores]:
    """Return the scores of every choice's candidates."""
    most = max(sum(map(len, choice.candidates)) for choice in asked)
    reading = reader.read([choice.ids for choice in asked], room=most)
    first = torch.log_softmax(reading.logits[:, 0], dim=-1)
    found: dict[int, Scores] = {}
    step = max(1, chunk_tokens // max(1, most))
    for start in range(0, len(asked), step):
        numbers = reading.order[start : start + step]
        rows = [asked[number].candidates for number in numbers]
        layout = _lay_out(rows)
        cache = reading.cache.part(start, start + len(numbers))
        span = cache.branches(layout.offsets, layout.branch)
        hidden = model.hidden(layout.ids, cache=cache, span=span)
        logprobs = torch.log_softmax(model.logits(hidden[layout.rows, layout.places]), dim=-1)
        later = logprobs.gather(1, layout.targets[:, None])[:, 0].tolist()
        found.update(zip(numbers, _collect(rows, first[start : start + step], later), strict=True))
    if reader.held is not None:
        reader.held.hold(reading.cache, [asked[number].ids for number in reading.order])
    return [found[number] for number in range(len(asked))]


@dataclass(frozen=True, slots=True)
class _Layout:
    ids: torch.Tensor
    """[rows, tokens]: every token of every candidate but its last, which nothing follows."""
    offsets: torch.Tensor
    branch: torch.Tensor
    rows: torch.Tensor
    """Where each token that is not filler stands: its row, its place, and the token after it."""
    places: torch.Tensor
    targets: torch.Tensor


def _lay_out(rows: Sequence[tuple[tuple[int, ...], ...]]) -> _Layout:
    width = max([sum(max(0, len(ids) - 1) for ids in row) for row in rows] + [1])
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    offsets, branch = torch.zeros_like(ids), torch.full_like(ids, -1)
    where: list[tuple[int, int, int]] = []
    for row, candidates in enumerate(rows):
        place = 0
        for number, tokens in enumerate(candidates):
            for offset, (token, following) in enumerate(pairwise(tokens)):
                ids[row, place], offsets[row, place], branch[row, place] = token, offset, number
                where.append((row, place, following))
                place += 1
    at, places, targets = torch.tensor(where, dtype=torch.long).view(-1, 3).unbind(1)
    return _Layout(ids, offsets, branch, at, places, targets)


def _collect(
    rows: Sequence[tuple[tuple[int, ...], ...]], first: torch.Tensor, later: list[float]
) -> list[Scores]:
    """Put the scores of first tokens and of those after them together, candidate by candidate."""
    rest = iter(later)
    found: list[Scores] = []
    for row, candidates in enumerate(rows):
        found.append([])
        for tokens in candidates:
            head = [float(first[row, tokens[0]])] if tokens else []
            found[-1].append((*head, *(next(rest) for _ in tokens[1:])))
    return found
