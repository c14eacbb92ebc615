"""What a model misses of the text that it should learn, kind by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import functional, torch
from dreamgym.models.samples import Batch, Sample, collate, plan_epoch


@dataclass(frozen=True, slots=True)
class SpanScore:
    """How well one kind of text is predicted."""

    loss: float
    """Mean negative log-probability of a token."""
    accuracy: float
    """Share of tokens that would be guessed right."""
    exact: float
    """Share of samples whose tokens of this kind would all be guessed right, each given the text
    before it."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Predicted:
    """Every token of a batch that counts: its loss, its kind, its row, whether it was guessed."""

    losses: torch.Tensor
    kinds: torch.Tensor
    rows: torch.Tensor
    right: torch.Tensor

    def weighted(self, weights: torch.Tensor) -> torch.Tensor:
        """Return the sum of the losses, each times the weight of its kind."""
        return (self.losses * weights[self.kinds]).sum()


def predict(model: CausalLM, batch: Batch) -> Predicted:
    """Predict the tokens that count, and only those: the rest is read and not scored."""
    wanted = batch.spans[:, 1:] > 0
    hidden = model.hidden(batch.ids)[:, :-1][wanted]
    targets = batch.ids[:, 1:][wanted]
    logits = model.logits(hidden)
    losses = functional.cross_entropy(logits, targets, reduction="none")
    rows = wanted.nonzero()[:, 0]
    right = logits.detach().argmax(dim=-1) == targets
    return Predicted(losses, batch.spans[:, 1:][wanted], rows, right)


class Tally:
    """Adds up predictions, kind by kind. Kind 0 does not count."""

    def __init__(self, kinds: int) -> None:
        self._sums = torch.zeros(3, kinds + 1, dtype=torch.float64)
        self._samples = torch.zeros(2, kinds + 1, dtype=torch.float64)
        self._kinds = kinds

    def add(self, found: Predicted) -> None:
        """Count a batch's predictions."""
        columns = (found.losses.detach(), found.right, torch.ones_like(found.losses))
        for row, column in zip(self._sums, columns, strict=True):
            row.index_add_(0, found.kinds, column.double())
        if len(found.rows):
            # One cell per row and kind: does it occur, and was any of its tokens missed?
            cells = found.rows * (self._kinds + 1) + found.kinds
            shape = (int(found.rows.max()) + 1, self._kinds + 1)
            tokens = torch.bincount(cells, minlength=shape[0] * shape[1]).view(shape)
            missed = torch.bincount(cells, (~found.right).double(), shape[0] * shape[1]).view(shape)
            self._samples[0] += (tokens > 0).sum(0)
            self._samples[1] += ((tokens > 0) & (missed == 0)).sum(0)

    def scores(self, names: Sequence[str]) -> dict[str, SpanScore]:
        """Return the score of every kind that occurred, by name."""
        found: dict[str, SpanScore] = {}
        for kind, name in enumerate(names, start=1):
            loss, right, tokens = self._sums[:, kind].tolist()
            samples, exact = self._samples[:, kind].tolist()
            if tokens:
                found[name] = SpanScore(
                    loss / tokens, right / tokens, exact / samples, tokens=int(tokens)
                )
        return found

    def mean_loss(self, weights: torch.Tensor) -> float:
        """Return the mean loss of a token, weighted by kind."""
        total = float((self._sums[2] * weights).sum())
        return float((self._sums[0] * weights).sum()) / total if total else float("nan")


def evaluate(model: CausalLM, samples: Sequence[Sample], *, kinds: int, budget: int) -> Tally:
    """Predict every sample once, without learning."""
    tally = Tally(kinds)
    lengths = [len(sample.ids) for sample in samples]
    was_training = bool(getattr(model, "training", False))
    model.train(False)
    with torch.inference_mode():
        for numbers in plan_epoch(lengths, budget=budget, seed=0, epoch=0):
            tally.add(predict(model, collate([samples[number] for number in numbers])))
    model.train(was_training)
    return tally
