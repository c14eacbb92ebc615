"""Choices among candidates, scored with gradients: candidates stand as branches beside a sequence.

Each branch sees the sequence up to where its turn began, and itself, but neither the candidate that
was chosen nor its neighbours. So a whole episode of choices, with all that could have been chosen,
is still one row that is read once. Candidates of one turn that begin alike share what is alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dreamgym.models.cache import Piece, Span
from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import torch
from dreamgym.train.tokens import READ, Decision, Ids, TokenSequence

PIECE = 256
"""Tokens of branches that attend together."""
FIRST = 1
"""What filler sees: one token, since a softmax over nothing is no number."""


@dataclass(frozen=True, slots=True)
class Branches:
    """Where candidates stand. D decisions, C candidates of each at most, M tokens of them all."""

    ids_RB: torch.Tensor
    """The tokens that stand to the right of all sequences."""
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
        pieces = tuple(
            replace(piece, mask=None if piece.mask is None else piece.mask.to(like))
            for piece in self.span.pieces
        )
        span = Span(self.span.positions.to(like.device), None, pieces=pieces)
        rest = {name: getattr(self, name) for name in self.__slots__ if name != "span"}
        return Branches(span=span, **{name: one.to(like.device) for name, one in rest.items()})


class _Row:
    """The branches of one sequence while they are laid. Columns are counted through the row."""

    def __init__(self, main: int) -> None:
        self.main = main
        """Where branches begin."""
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.seen: list[int] = []
        """How much of the sequence each token sees."""
        self.trails: list[tuple[int, ...]] = []
        """Which tokens of branches it sees, itself the last."""

    def lay(self, decision: Decision) -> list[list[int]]:
        """Lay what candidates have of their own; return the columns of each, but of its last token.

        What begins alike stands once, and what begins like the choice stands in the sequence.
        """
        chosen, place = decision.candidates[decision.chosen], decision.place
        columns = {chosen[:size]: place + size - 1 for size in range(1, len(chosen))}
        found = []
        for candidate in decision.candidates:
            path = [candidate[:size] for size in range(1, len(candidate))]
            for begun in path:
                if begun not in columns:
                    columns[begun] = self._place(begun, columns, place)
            found.append([columns[begun] for begun in path])
        return found

    def _place(self, path: Ids, columns: Mapping[Ids, int], place: int) -> int:
        """Lay the last token of a path after what comes before it; return its column."""
        column, parent = self.main + len(self.ids), columns.get(path[:-1], place - 1)
        in_sequence = parent < self.main
        before = () if in_sequence else self.trails[parent - self.main]
        self.seen.append(parent + 1 if in_sequence else self.seen[parent - self.main])
        self.ids.append(path[-1])
        self.positions.append(place + len(path) - 1)
        self.trails.append((*before, column - self.main))
        return column


def lay_branches(sequences: Sequence[TokenSequence], *, main: int) -> Branches | None:
    """Say which tokens stand to the right of sequences, from column `main` on, and what they see.

    None where nothing was chosen.
    """
    if not any(sequence.decisions for sequence in sequences):
        return None
    widest = max(len(d.candidates) for s in sequences for d in s.decisions)
    laid = [_Row(main) for _ in sequences]
    tokens: list[tuple[int, int, int, int]] = []
    decisions: list[tuple[int, int, int]] = []
    first = 0
    for row, sequence in enumerate(sequences):
        flat = np.cumsum([turn != READ for turn in sequence.turns]) - 1 + first
        first += len(sequence.logprobs)
        for decision in sequence.decisions:
            cell = len(decisions) * widest
            decisions.append((int(flat[decision.place]), decision.chosen, len(decision.candidates)))
            columns = laid[row].lay(decision)
            for number, candidate in enumerate(decision.candidates):
                before = [decision.place - 1, *columns[number]]
                tokens += [
                    (row, column, token, cell + number)
                    for column, token in zip(before, candidate, strict=True)
                ]
    at, before_M, targets, cells = torch.tensor(tokens).unbind(1)
    places, chosen, sizes = torch.tensor(decisions).unbind(1)
    return Branches(
        ids_RB=torch.from_numpy(_table([one.ids for one in laid], filler=0)),
        span=_span(laid, main),
        decisions_D=places,
        chosen_D=chosen,
        rows_M=at,
        before_M=before_M,
        targets_M=targets,
        cells_M=cells,
        known_DC=torch.arange(widest) < sizes[:, None],
    )


def _table(rows: Sequence[Sequence[int]], *, filler: int) -> NDArray[np.int64]:
    table = np.full((len(rows), max(map(len, rows))), filler)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def _span(laid: Sequence[_Row], main: int) -> Span:
    """Return what all tokens see: sequences themselves, branches so much of them and their own."""
    positions = _table([one.positions for one in laid], filler=0)
    seen = _table([one.seen for one in laid], filler=FIRST)
    pairs = np.array(
        [
            (row, trail[-1], fellow)
            for row, one in enumerate(laid)
            for trail in one.trails
            for fellow in trail
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    pieces = [Piece(0, main, (slice(0, main),), None)]
    for start in range(0, positions.shape[1], PIECE):
        stop = min(start + PIECE, positions.shape[1])
        here = pairs[(pairs[:, 1] >= start) & (pairs[:, 1] < stop)]
        begin = int(min(start, here[:, 2].min()))
        most = int(seen[:, start:stop].max())
        sight = np.zeros((len(laid), stop - start, most + stop - begin), dtype=bool)
        sight[:, :, :most] = np.arange(most) < seen[:, start:stop, None]
        sight[here[:, 0], here[:, 1] - start, most + here[:, 2] - begin] = True
        mask = torch.zeros(sight.shape).masked_fill(~torch.from_numpy(sight), -torch.inf)
        columns = (slice(0, most), slice(main + begin, main + stop))
        pieces.append(Piece(main + start, main + stop, columns, mask[:, None]))
    ahead = np.broadcast_to(np.arange(main), (len(laid), main))
    where = torch.from_numpy(np.concatenate([ahead, positions], axis=1))
    return Span(where, None, pieces=tuple(pieces))


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
