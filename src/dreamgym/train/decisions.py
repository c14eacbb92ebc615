"""Choices among candidates, scored with gradients: candidates stand as branches beside a sequence.

Each branch sees the sequence up to where its turn began, and itself, but neither the candidate that
was chosen nor its neighbours. So a whole episode of choices, with all that could have been chosen,
is still one row that is read once. Candidates of one turn that begin alike share what is alike, and
episodes that stood before the very same choice, whatever they chose, are one trunk.
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
class Fork:
    """A decision as it is read."""

    place: int
    """Where its candidates begin."""
    candidates: tuple[Ids, ...]
    taken: Ids
    """The one that stands in the sequence; none where the sequence ends here."""


@dataclass(frozen=True, slots=True)
class Trunk:
    """What a model reads to score a sequence: one for all sequences of which it is the same."""

    ids: Ids
    forks: tuple[Fork, ...] = ()


def trunk_of(sequence: TokenSequence) -> Trunk:
    """Return what has to be read of a sequence, up to its last decision if nothing is said after.

    What was chosen there is one of the candidates, and need not stand in the sequence.
    """
    if not sequence.decisions:
        return Trunk(sequence.ids)
    last = sequence.decisions[-1].place
    ends = all(turn == READ for turn in sequence.turns[last + 1 :])
    forks = tuple(
        Fork(one.place, one.candidates, () if ends and one.place == last else _chosen(one))
        for one in sequence.decisions
    )
    return Trunk(sequence.ids[:last] if ends else sequence.ids, forks)


def _chosen(decision: Decision) -> Ids:
    return decision.candidates[decision.chosen]


@dataclass(frozen=True, slots=True)
class Branches:
    """Where candidates stand.

    D decisions, F forks that they are of, C candidates of each at most, M tokens of them all.
    """

    ids_UB: torch.Tensor
    """The tokens that stand to the right of all trunks."""
    span: Span
    """Where all tokens of the batch stand and what they see."""
    decisions_D: torch.Tensor
    """Which action token of the batch each decision is."""
    forks_D: torch.Tensor
    """Which fork it stood at, and which candidate was chosen there."""
    chosen_D: torch.Tensor
    trunks_M: torch.Tensor
    """Every token of every candidate: its trunk, the token before it, itself, and its candidate's
    cell in a table [F, C]."""
    before_M: torch.Tensor
    targets_M: torch.Tensor
    cells_M: torch.Tensor
    known_FC: torch.Tensor
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
    """The branches of one trunk while they are laid. Columns are counted through the row."""

    def __init__(self, main: int) -> None:
        self.main = main
        """Where branches begin."""
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.seen: list[int] = []
        """How much of the trunk each token sees."""
        self.trails: list[tuple[int, ...]] = []
        """Which tokens of branches it sees, itself the last."""

    def lay(self, fork: Fork) -> list[list[int]]:
        """Lay what candidates have of their own; return the columns of each, but of its last token.

        What begins alike stands once, and what begins like the one taken stands in the sequence.
        """
        taken, place = fork.taken, fork.place
        columns = {taken[:size]: place + size - 1 for size in range(1, len(taken))}
        found = []
        for candidate in fork.candidates:
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


def lay_branches(
    sequences: Sequence[TokenSequence], trunks: Mapping[Trunk, int], *, main: int
) -> Branches | None:
    """Say which tokens stand to the right of trunks, from column `main` on, and what they see.

    None where nothing was chosen.

    Args:
        sequences: of the batch.
        trunks: what is read of them, each with its row.
        main: the length of the longest.
    """
    forks = [fork for trunk in trunks for fork in trunk.forks]
    if not forks:
        return None
    widest = max(len(fork.candidates) for fork in forks)
    laid = [_Row(main) for _ in trunks]
    tokens: list[tuple[int, int, int, int]] = []
    first_fork: dict[Trunk, int] = {}
    number = 0
    for trunk, row in trunks.items():
        first_fork[trunk] = number
        for fork in trunk.forks:
            columns = laid[row].lay(fork)
            for place, candidate in enumerate(fork.candidates):
                before = [fork.place - 1, *columns[place]]
                cell = number * widest + place
                tokens += [
                    (row, column, token, cell)
                    for column, token in zip(before, candidate, strict=True)
                ]
            number += 1
    at, before_M, targets, cells = torch.tensor(tokens).unbind(1)
    places, numbers, chosen = torch.tensor(_decided(sequences, first_fork)).unbind(1)
    sizes = torch.tensor([len(fork.candidates) for fork in forks])
    return Branches(
        ids_UB=torch.from_numpy(_table([one.ids for one in laid], filler=0)),
        span=_span(laid, main),
        decisions_D=places,
        forks_D=numbers,
        chosen_D=chosen,
        trunks_M=at,
        before_M=before_M,
        targets_M=targets,
        cells_M=cells,
        known_FC=torch.arange(widest) < sizes[:, None],
    )


def _decided(
    sequences: Sequence[TokenSequence], first_fork: Mapping[Trunk, int]
) -> list[tuple[int, int, int]]:
    """Return for every decision its action token in the batch, its fork, and what was chosen."""
    found, first = [], 0
    for sequence in sequences:
        flat = np.cumsum([turn != READ for turn in sequence.turns]) - 1 + first
        first += len(sequence.logprobs)
        if sequence.decisions:
            fork = first_fork[trunk_of(sequence)]
            found += [
                (int(flat[one.place]), fork + number, one.chosen)
                for number, one in enumerate(sequence.decisions)
            ]
    return found


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
    logits = model.logits(hidden[branches.trunks_M, branches.before_M])
    scores = torch.log_softmax(full_precision(logits), dim=-1)
    each = scores.gather(1, branches.targets_M[:, None])[:, 0]
    known = branches.known_FC
    table = each.new_zeros(known.numel()).index_add(0, branches.cells_M, each).view(known.shape)
    table = (table / temperature).masked_fill(~known, -torch.inf)
    logprobs = torch.log_softmax(table, dim=-1)
    finite = logprobs.masked_fill(~known, 0.0)
    entropies = -(finite.exp() * finite).sum(dim=-1)
    forks = branches.forks_D
    return logprobs[forks, branches.chosen_D], entropies[forks]


def full_precision(scores: torch.Tensor) -> torch.Tensor:
    """Return numbers of 32 bits at least: small differences of logprobs are what is learnt from."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
