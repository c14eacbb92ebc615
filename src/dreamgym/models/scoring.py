"""How likely given answers are: the candidates of a prompt, read side by side after it.

The prompt is read once. Its candidates stand in one row behind it, each seeing the prompt and
itself but not its neighbours, so that the prompt's keys and values are passed over once for all of
them: with what is new in the prompt where rows stay between calls, else in a pass of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dreamgym.models.cache import FILLER, TRUNK
from dreamgym.models.causal import CachedLM
from dreamgym.models.reading import Reader
from dreamgym.models.requirement import torch

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A prompt and the answers to be compared."""

    ids: Ids
    candidates: tuple[Ids, ...]


Scores = list[tuple[float, ...]]
"""For each candidate, the log-probability of each of its tokens."""
Wanted = Mapping[Ids, Iterable[Ids]]
"""For each prompt, the candidates of all who ask about it."""
Found = dict[Ids, dict[Ids, tuple[float, ...]]]
"""For each prompt and each of its candidates, the log-probability of every token."""


def score_choices(
    model: CachedLM, reader: Reader, asked: Sequence[Choice], *, chunk_tokens: int
) -> list[Scores]:
    """Return the scores of every choice's candidates."""
    wanted: dict[Ids, dict[Ids, None]] = {}
    for choice in asked:
        wanted.setdefault(choice.ids, {}).update(dict.fromkeys(choice.candidates))
    if reader.held is None:
        found = _in_two_passes(model, reader, wanted, chunk_tokens=chunk_tokens)
    else:
        found = _in_one_pass(model, reader, wanted)
    return [[found[choice.ids][ids] for ids in choice.candidates] for choice in asked]


def _in_one_pass(model: CachedLM, reader: Reader, wanted: Wanted) -> Found:
    """Read what is new in prompts and, behind it, their candidates."""
    reader.read_shared(list(wanted))
    most = max(len(ids) + _size(some) for ids, some in wanted.items())
    prompts, cache = reader.held_rows(list(wanted), columns=most)
    new = [ids[held:] for ids, held in zip(prompts, cache.lengths.tolist(), strict=True)]
    sizes = [len(ids) + _size(wanted[prompt]) for ids, prompt in zip(new, prompts, strict=True)]
    order = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    found: Found = {}
    for start, stop in reader.chunks([sizes[row] for row in order]):
        rows = sorted(order[start:stop])
        some = {prompts[row]: wanted[prompts[row]] for row in rows}
        layout = _lay_out(list(some.values()), [new[row] for row in rows])
        part = cache.only(rows)
        span = replace(part.branches(layout.offsets, layout.branch), asked=layout.asked)
        hidden = model.hidden(layout.ids, cache=part, span=span)
        logprobs = torch.log_softmax(model.logits(hidden[layout.asked >= 0]), dim=-1)
        firsts = [0, *accumulate(1 + _size(candidates) for candidates in some.values())]
        found.update(_collect(some, logprobs, firsts, [first + 1 for first in firsts]))
    reader.finish(prompts, cache, read=sum(map(len, new)))
    return found


def _in_two_passes(model: CachedLM, reader: Reader, wanted: Wanted, *, chunk_tokens: int) -> Found:
    """Read prompts, then their candidates."""
    most = max(1, *map(_size, wanted.values()))
    prompts = list(wanted)
    reading = reader.read(prompts, room=most)
    step = max(1, chunk_tokens // most)
    found: Found = {}
    for start in range(0, len(prompts), step):
        numbers = reading.order[start : start + step]
        some = {prompts[number]: wanted[prompts[number]] for number in numbers}
        layout = _lay_out(list(some.values()), [()] * len(numbers))
        cache = reading.cache.part(start, start + len(numbers))
        span = cache.branches(layout.offsets, layout.branch)
        hidden = model.hidden(layout.ids, cache=cache, span=span)
        row, place = (layout.branch != FILLER).nonzero().unbind(1)
        scores = torch.cat(
            (reading.logits[start : start + step, 0], model.logits(hidden[row, place]))
        )
        later = [len(numbers), *accumulate(map(_size, some.values()), initial=len(numbers))][1:]
        logprobs = torch.log_softmax(scores, dim=-1)
        found.update(_collect(some, logprobs, range(len(numbers)), later))
    return found


def _size(candidates: Iterable[Ids]) -> int:
    """Return how many tokens are read of candidates: all but the last, which nothing follows."""
    return sum(max(0, len(ids) - 1) for ids in candidates)


@dataclass(frozen=True, slots=True)
class _Layout:
    ids: torch.Tensor
    """[rows, tokens]: what is new in the prompt, then the tokens of every candidate."""
    offsets: torch.Tensor
    branch: torch.Tensor
    asked: torch.Tensor
    """[rows, some]: the last token of the prompt, and those of candidates; -1 beyond."""


def _lay_out(rows: Sequence[Iterable[Ids]], new: Sequence[Ids]) -> _Layout:
    ids: list[list[int]] = []
    offsets: list[list[int]] = []
    branch: list[list[int]] = []
    for candidates, before in zip(rows, new, strict=True):
        ids.append(list(before))
        offsets.append(list(range(len(before))))
        branch.append([TRUNK] * len(before))
        for number, tokens in enumerate(candidates):
            ids[-1] += tokens[:-1]
            offsets[-1] += range(len(before), len(before) + len(tokens) - 1)
            branch[-1] += [number] * (len(tokens) - 1)
    asked = [
        list(range(max(0, len(before) - 1), len(row))) for row, before in zip(ids, new, strict=True)
    ]
    return _Layout(_table(ids, 0), _table(offsets, 0), _table(branch, FILLER), _table(asked, -1))


def _table(rows: Sequence[list[int]], filler: int) -> torch.Tensor:
    width = max(1, *map(len, rows))
    return torch.tensor([[*row, *((filler,) * (width - len(row)))] for row in rows])


def _collect(
    some: Wanted, logprobs: torch.Tensor, firsts: Sequence[int], later: Sequence[int]
) -> Found:
    """Put scores together, candidate by candidate.

    Args:
        some: prompts and candidates.
        logprobs: [tokens, vocab], of what follows a token.
        firsts: for each prompt, where the scores of what follows it are.
        later: for each prompt, where those of its candidates' tokens begin.
    """
    places: list[int] = []
    tokens: list[int] = []
    for candidates, first, place in zip(some.values(), firsts, later, strict=False):
        for ids in candidates:
            places += [first, *range(place, place + len(ids) - 1)][: len(ids)]
            tokens += ids
            place += max(0, len(ids) - 1)
    values = iter(logprobs[places, tokens].tolist())
    return {
        prompt: {ids: tuple(next(values) for _ in ids) for ids in candidates}
        for prompt, candidates in some.items()
    }
