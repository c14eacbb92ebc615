"""Sequences side by side, as tensors: trunks of like length, filled up on the right.

A row is one sequence with what its action tokens are to learn; rows of which the model reads the
same are one trunk. Per-token columns are flat, one number per action token in order of rows, so
filler never meets a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dreamgym.models.requirement import torch
from dreamgym.models.samples import plan_epoch
from dreamgym.train.decisions import Branches, Trunk, lay_branches, trunk_of
from dreamgym.train.tokens import READ, Floats, TokenSequence


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known about each action token. What an objective does not use is left out."""

    old: Floats | None = None
    """Its logprob under the policy that played."""
    reference: Floats | None = None
    """Its logprob under the reference policy."""
    advantages: Floats | None = None
    returns: Floats | None = None
    values: Floats | None = None
    """The critic's value before it, when it was played."""

    def part(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the tokens."""
        parts = {
            name: None if column is None else column[start:stop] for name, column in self._items()
        }
        return Columns(**parts)

    def _items(self) -> list[tuple[str, Floats | None]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to learn from."""

    sequence: TokenSequence
    columns: Columns = Columns()
    weight: float = 1.0
    """Of each of its action tokens in the loss."""
    unit: int = 0
    """Which episode or pair of the minibatch it belongs to."""
    sign: float = 1.0
    """-1 for the worse episode of a pair."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Rows as tensors. R rows, U trunks of them, T tokens, N action tokens."""

    ids_UT: torch.Tensor
    """The trunks; candidates are to stand to the right of them."""
    trunks_R: torch.Tensor
    """Which of them each row is read as."""
    rows_N: torch.Tensor
    before_N: torch.Tensor
    """The column of what was read before each action token; never less than 0."""
    targets_N: torch.Tensor
    """The action tokens."""
    written_W: torch.Tensor
    """Which of them were written one by one, not chosen among candidates."""
    weights_N: torch.Tensor
    units_R: torch.Tensor
    """Numbered from 0 within the batch."""
    weights_R: torch.Tensor
    signs_R: torch.Tensor
    old_N: torch.Tensor | None
    reference_N: torch.Tensor | None
    advantages_N: torch.Tensor | None
    returns_N: torch.Tensor | None
    values_N: torch.Tensor | None
    branches: Branches | None
    """Where candidates stand; None where nothing was chosen among any."""

    @property
    def tokens(self) -> int:
        """How many action tokens there are."""
        return len(self.rows_N)

    def before(self, hidden_UT: torch.Tensor) -> torch.Tensor:
        """Return what a model made of the token before each action token."""
        return hidden_UT[self.trunks_R[self.rows_N], self.before_N]


def collate(
    rows: Sequence[Row], *, like: torch.Tensor | None = None, choices: bool = True
) -> TokenBatch:
    """Put rows side by side.

    Args:
        rows: at least one.
        like: numbers go where this tensor is, with its precision if that is not less than 32 bits:
            logprobs of 16 bits would make ratios of noise.
        choices: lay candidates beside their sequences; who judges states needs none of them.
    """
    sequences = [row.sequence for row in rows]
    read = [trunk_of(one) if choices else Trunk(one.ids) for one in sequences]
    trunks = {trunk: number for number, trunk in enumerate(dict.fromkeys(read))}
    main = max(len(trunk.ids) for trunk in trunks)
    branches = lay_branches(sequences, trunks, main=main) if choices else None
    ids = torch.zeros(len(trunks), main, dtype=torch.long)
    for trunk, number in trunks.items():
        ids[number, : len(trunk.ids)] = torch.tensor(trunk.ids)
    acted = _action_tokens(sequences)
    written = torch.ones(len(acted), dtype=torch.bool)
    if branches is not None:
        written[branches.decisions_D] = False
    exact = torch.zeros(()) if like is None else like
    example = exact.new_zeros((), dtype=torch.promote_types(exact.dtype, torch.float32))
    units = np.unique([row.unit for row in rows], return_inverse=True)[1]
    weights = torch.tensor([row.weight for row in rows]).to(example)
    numbers, before, targets = acted.to(example.device).unbind(1)

    def column(name: str) -> torch.Tensor | None:
        parts = [getattr(row.columns, name) for row in rows]
        if any(part is None for part in parts):
            return None
        return torch.from_numpy(np.concatenate(parts)).to(example)

    return TokenBatch(
        ids_UT=ids.to(example.device),
        trunks_R=torch.tensor([trunks[trunk] for trunk in read]).to(example.device),
        rows_N=numbers,
        before_N=before,
        targets_N=targets,
        written_W=written.nonzero()[:, 0].to(example.device),
        weights_N=weights[numbers],
        units_R=torch.from_numpy(units.reshape(-1)).to(example.device),
        weights_R=weights,
        signs_R=torch.tensor([row.sign for row in rows]).to(example),
        old_N=column("old"),
        reference_N=column("reference"),
        advantages_N=column("advantages"),
        returns_N=column("returns"),
        values_N=column("values"),
        branches=None if branches is None else branches.to(exact),
    )


def _action_tokens(sequences: Sequence[TokenSequence]) -> torch.Tensor:
    """Return [N, 3]: the row of each action token, the column before it, and the token."""
    found = [
        (row, place - 1, one.ids[place])
        for row, one in enumerate(sequences)
        for place, turn in enumerate(one.turns)
        if turn != READ
    ]
    return torch.tensor(found, dtype=torch.long).reshape(-1, 3)


def plan_trunks(sequences: Sequence[TokenSequence], *, budget: int) -> list[list[int]]:
    """Put sequences into passes of at most so many tokens; those of one trunk stay together."""
    alike: dict[Trunk, list[int]] = {}
    for number, sequence in enumerate(sequences):
        alike.setdefault(trunk_of(sequence), []).append(number)
    kept = list(alike.values())
    sizes = [max(sequences[number].size for number in numbers) for numbers in kept]
    return [
        [number for place in places for number in kept[place]]
        for places in plan_passes(sizes, budget=budget)
    ]


def plan_passes(sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Put sequences of like length into passes of at most so many tokens, filler included."""
    return plan_epoch(sizes, budget=budget, seed=0, epoch=0)
