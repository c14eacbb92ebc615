"""Choices among candidates, scored with gradients: candidates stand as branches beside a sequence.

Each branch sees the sequence up to where its turn began, and itself, but neither the candidate that
was chosen nor its neighbours. So a whole episode of choices, with all that could have been chosen,
is still one row that is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dreamgym.models.cache import Span
from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import torch
from dreamgym.train.tokens import READ, TokenSequence

FILLER = -2
MAIN = -1


@dataclass(frozen=True, slots=True)
class Branches:
    """Where candidates stand. D decisions, C candidates of each at most, M tokens of them all."""

    span: Span
    """Where all tokens of the batch stand and what they see."""
    decisions_D: torch.Tensor
    """Which action token of the batch each decision is."""
    chosen_D: torch.Tensor
    rows_M: torch.Tensor
    """Every token of every candidate: its row, the token before it, itself, and its candidate's
    cell in a table [D, C]."""
    before_M: torch.Tensor
    targets_M: torch.Tensor
    cells_M: torch.Tensor
    known_DC: torch.Tensor
    """Which cells of the table are candidates."""

    def to(self, like: torch.Tensor) -> Branches:
        """Go where a tensor is, and take its precision where numbers are not counts."""
        mask = None if self.span.mask is None else self.span.mask.to(like)
        span = Span(self.span.positions.to(like.device), mask)
        rest = [getattr(self, name).to(like.device) for name in self.__slots__ if name != "span"]
        return Branches(span, *rest)


def lay_branches(sequences: Sequence[TokenSequence], ids_RT: torch.Tensor) -> Branches | None:
    """Write candidates to the right of their sequences into `ids_RT`, and say where they stand."""
    if not any(sequence.decisions for sequence in sequences):
        return None
    widest = max(len(d.candidates) for s in sequences for d in s.decisions)
    rows, width = ids_RT.shape
    positions = torch.zeros(rows, width, dtype=torch.long)
    seen = torch.zeros(rows, width, dtype=torch.long)
    branch = torch.full((rows, width), FILLER)
    tokens: list[tuple[int, int, int, int]] = []
    decisions: list[tuple[int, int, int]] = []
    first = 0
    for row, sequence in enumerate(sequences):
        column = len(sequence.ids)
        positions[row, :column] = torch.arange(column)
        seen[row, :column] = torch.arange(column) + 1
        branch[row, :column] = MAIN
        flat = np.cumsum([turn != READ for turn in sequence.turns]) - 1 + first
        first += len(sequence.logprobs)
        for decision in sequence.decisions:
            cell = len(decisions) * widest
            size = len(decision.candidates)
            decisions.append((int(flat[decision.place]), decision.chosen, size))
            for number, candidate in enumerate(decision.candidates):
                tokens.append((row, decision.place - 1, candidate[0], cell + number))
                for offset, (token, following) in enumerate(pairwise(candidate)):
                    ids_RT[row, column] = token
                    positions[row, column] = decision.place + offset
                    seen[row, column] = decision.place
                    branch[row, column] = cell + number
                    tokens.append((row, column, following, cell + number))
                    column += 1
    at, before, targets, cells = torch.tensor(tokens).unbind(1)
    places, chosen, sizes = torch.tensor(decisions).unbind(1)
    return Branches(
        span=Span(positions, _mask(seen, branch)),
        decisions_D=places,
        chosen_D=chosen,
        rows_M=at,
        before_M=before,
        targets_M=targets,
        cells_M=cells,
        known_DC=torch.arange(widest) < sizes[:, None],
    )


def _mask(seen: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
    """Return what each token sees: so much of its sequence, and its own branch up to itself."""
    columns = torch.arange(seen.shape[1])
    sequence = (branch[:, None, :] == MAIN) & (columns < seen[:, :, None])
    fellows = (branch[:, :, None] == branch[:, None, :]) & (branch[:, :, None] != MAIN)
    itself = fellows & (columns[:, None] >= columns)
    return torch.zeros(sequence.shape).masked_fill(~(sequence | itself), -torch.inf)[:, None]


def score_decisions(
    model: CausalLM, hidden: torch.Tensor, branches: Branches, *, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logprob of what was chosen, and the entropy of each decision."""
    logits = model.logits(hidden[branches.rows_M, branches.before_M])
    scores = torch.log_softmax(full_precision(logits), dim=-1)
    each = scores.gather(1, branches.targets_M[:, None])[:, 0]
    known = branches.known_DC
    table = each.new_zeros(known.numel()).index_add(0, branches.cells_M, each).view(known.shape)
    table = (table / temperature).masked_fill(~known, -torch.inf)
    logprobs = torch.log_softmax(table, dim=-1)
    finite = logprobs.masked_fill(~known, 0.0)
    entropies = -(finite.exp() * finite).sum(dim=-1)
    return logprobs.gather(1, branches.chosen_D[:, None])[:, 0], entropies


def full_precision(scores: torch.Tensor) -> torch.Tensor:
    """Return numbers of 32 bits at least: small differences of logprobs are what is learnt from."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
