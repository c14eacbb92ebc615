"""Supervised fine-tuning: learn marked parts of token sequences, with exact resume.

With a budget of steps, everything is determined by weights, samples and plan: killed at any moment
and started again, training ends with the same bits (on a processor, with as many threads). With a
budget of seconds it is not, since the clock decides the learning rate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.models.adamw import AdamW
from dreamgym.models.causal import CausalLM
from dreamgym.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from dreamgym.models.losses import SpanScore, Tally, evaluate, predict
from dreamgym.models.requirement import nn, torch
from dreamgym.models.samples import Batch, Sample, Samples, collate, plan_epoch
from dreamgym.models.sft_plan import (
    HeldOut,
    SftPlan,
    SftProgress,
    SftResult,
    check_same_plan,
    comparable,
    rate_factor,
)
from dreamgym.types import derive_seed, digest

SAVE_SECONDS = 30.0
"""After so long there is a checkpoint, however few updates were made."""


@dataclass(slots=True)
class _Position:
    """Everything that a checkpoint must hold beside tensors."""

    step: int = 0
    epoch: int = 0
    index: int = 0
    tokens: int = 0
    computed: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best_loss: float = math.inf
    setbacks: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    stopped: bool = False
    """Done before the budget was spent, for want of progress."""


def fit(
    model: CausalLM,
    train: Samples,
    *,
    plan: SftPlan,
    held_out: Sequence[Sample] = (),
    folder: Path | None = None,
    on_progress: Callable[[SftProgress], None] | None = None,
) -> SftResult:
    """Train the model in place; it ends with the weights that were best on the held-out samples.

    Args:
        model: any model; only weights that require gradients change.
        train: samples, or a function from epoch to samples.
        plan: how.
        held_out: samples for the curve; without any, the last weights count as best.
        folder: for checkpoints. Training goes on from the newest one there.
        on_progress: told after every step.
    """
    return _Fit(model, train, plan=plan, held_out=held_out, folder=folder).run(on_progress)


class _Fit:
    """One training run."""

    def __init__(
        self,
        model: CausalLM,
        train: Samples,
        *,
        plan: SftPlan,
        held_out: Sequence[Sample],
        folder: Path | None,
    ) -> None:
        self._model, self._plan, self._held_out, self._folder = model, plan, held_out, folder
        self._source = train if callable(train) else lambda _: train
        self._names = list(plan.spans)
        self._weights = torch.tensor([0.0, *plan.spans.values()])
        self._trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._optimizer = _make_optimizer(self._trained, plan)
        self._at = _Position()
        self._best: dict[str, torch.Tensor] = {}
        self._samples: Sequence[Sample] = ()
        self._batches: list[list[int]] = []
        self._started = self._saved = time.monotonic()
        self._saving = 0.0
        """How long the last checkpoint took."""

    def run(self, on_progress: Callable[[SftProgress], None] | None) -> SftResult:
        """Train until the budget is spent or patience is at its end."""
        found = load_checkpoint(self._folder) if self._folder is not None else None
        if found is not None:
            self._resume(found)
        self._open_epoch()
        if found is not None and found.state["samples"] != self._data_name():
            raise ConfigError(f"{self._folder} was begun with other samples. Use a new folder.")
        self._started = time.monotonic() - self._at.seconds
        self._model.train(True)
        while not self._at.done:
            progress = self._step()
            if not math.isfinite(progress.loss):
                raise ConfigError(
                    f"the loss is {progress.loss} at update {progress.step}: begin again with a "
                    f"lower learning rate, it was {progress.learning_rate:g}"
                )
            if self._at.done or self._at.step % self._plan.checkpoint_every == 0 or self._overdue():
                self._save()
            if on_progress is not None:
                on_progress(progress)
        self._model.train(False)
        _set_weights(self._trained, self._best)
        return self._result()

    def _overdue(self) -> bool:
        """Return whether much would be lost now; saving is to take a twentieth of the time."""
        return time.monotonic() - self._saved > max(SAVE_SECONDS, 20 * self._saving)

    def _share(self) -> float:
        """Return how much of the budget is spent."""
        if self._plan.steps is not None:
            return self._at.step / max(1, self._plan.steps)
        return (time.monotonic() - self._started) / max(1e-9, self._plan.seconds or 0.0)

    def _step(self) -> SftProgress:
        at, plan = self._at, self._plan
        rate = plan.learning_rate * rate_factor(plan, step=at.step, share=self._share())
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        batch = self._next_batch()
        with torch.random.fork_rng(devices=[]):
            # Dropout, where a model has it, is the same for a step whenever that step is made.
            torch.manual_seed(derive_seed(plan.seed, "step", at.step))
            tally = self._learn(batch)
        at.step += 1
        at.tokens += batch.tokens
        at.computed += batch.size
        at.seconds = time.monotonic() - self._started
        at.index += 1
        if at.index == len(self._batches):
            at.epoch, at.index = at.epoch + 1, 0
            self._open_epoch()
        at.done = self._share() >= 1
        point = self._look() if at.done or at.step % plan.eval_every == 0 else None
        at.done = at.done or at.stopped
        return self._progress(tally, rate, point)

    def _learn(self, batch: Batch) -> Tally:
        """Make one update."""
        tally = Tally(len(self._names))
        total = self._weights[batch.spans[:, 1:]].sum().clamp_min(1e-9)
        self._optimizer.zero_grad()
        for piece in batch.pieces(self._plan.tokens_per_pass):
            found = predict(self._model, piece)
            tally.add(found)
            (found.weighted(self._weights) / total).backward()
        nn.utils.clip_grad_norm_(self._trained.values(), self._plan.clip)
        self._optimizer.step()
        return tally

    def _open_epoch(self) -> None:
        at = self._at
        self._samples = self._source(at.epoch)
        lengths = [len(sample.ids) for sample in self._samples]
        if not lengths:
            raise ConfigError("there is nothing to train on")
        longest = max(lengths + [len(sample.ids) for sample in self._held_out])
        if longest > self._model.positions:
            raise ConfigError(
                f"a sample of {longest} tokens, but the model reads {self._model.positions}: "
                "cut samples or make the model with more positions"
            )
        label = max(max(sample.spans, default=0) for sample in (*self._samples, *self._held_out))
        if label > len(self._names):
            raise ConfigError(f"a sample has span label {label}; the plan names {self._names}")
        self._batches = plan_epoch(
            lengths, budget=self._plan.tokens_per_step, seed=self._plan.seed, epoch=at.epoch
        )

    def _next_batch(self) -> Batch:
        return collate([self._samples[number] for number in self._batches[self._at.index]])

    def _look(self) -> HeldOut | None:
        """Measure the held-out samples; keep the weights if they are the best so far."""
        at, plan = self._at, self._plan
        if not self._held_out:
            at.best_step = at.step
            return None
        budget = max(plan.tokens_per_pass, plan.tokens_per_step)
        tally = evaluate(self._model, self._held_out, kinds=len(self._names), budget=budget)
        point = HeldOut(at.step, tally.mean_loss(self._weights), tally.scores(self._names))
        at.curve.append(asdict(point))
        if point.loss < at.best_loss:
            at.best_step, at.best_loss, at.setbacks = at.step, point.loss, 0
            self._best = {name: w.detach().clone() for name, w in self._trained.items()}
        else:
            at.setbacks += 1
            at.stopped = plan.patience is not None and at.setbacks >= plan.patience
        return point

    def _progress(self, tally: Tally, rate: float, point: HeldOut | None) -> SftProgress:
        at, plan = self._at, self._plan
        share = max(1e-9, self._share())
        return SftProgress(
            step=at.step,
            steps=plan.steps,
            loss=tally.mean_loss(self._weights),
            spans=tally.scores(self._names),
            learning_rate=rate,
            tokens_per_second=at.tokens / max(1e-9, at.seconds),
            seconds_left=0.0 if at.done else at.seconds * (1 - share) / share,
            held_out=point,
        )

    def _save(self) -> None:
        if self._folder is None:
            return
        began = time.monotonic()
        tensors = {f"model/{name}": weight.detach() for name, weight in self._trained.items()}
        tensors |= {f"best/{name}": weight for name, weight in self._best.items()}
        for name, weight in self._trained.items():
            for key, value in self._optimizer.state[weight].items():
                tensors[f"adam/{key}/{name}"] = value
        state = {
            "position": asdict(self._at),
            "plan": comparable(self._plan),
            "samples": self._data_name(),
        }
        save_checkpoint(self._folder, Checkpoint(self._at.step, tensors, state))
        self._saved = time.monotonic()
        self._saving = self._saved - began

    def _data_name(self) -> str:
        """Return what tells this epoch's samples from others."""
        return digest(repr([(len(sample.ids), sample.ids[-1:]) for sample in self._samples]))

    def _resume(self, found: Checkpoint) -> None:
        check_same_plan(found.state["plan"], comparable(self._plan))
        self._at = _Position(**found.state["position"])
        groups: dict[str, dict[str, torch.Tensor]] = {}
        for path, tensor in found.tensors.items():
            group, name = path.rsplit("/", 1)
            groups.setdefault(group, {})[name] = tensor
        _set_weights(self._trained, groups.pop("model"))
        self._best = groups.pop("best", {})
        for group, tensors in groups.items():
            for name, tensor in tensors.items():
                self._optimizer.state[self._trained[name]][group.split("/")[1]] = tensor

    def _result(self) -> SftResult:
        at = self._at
        return SftResult(
            steps=at.step,
            tokens=at.tokens,
            padding=1 - at.tokens / max(1, at.computed),
            seconds=at.seconds,
            curve=tuple(_point(entry) for entry in at.curve),
            best_step=at.best_step,
            stopped_early=at.stopped,
        )


def _make_optimizer(trained: Mapping[str, nn.Parameter], plan: SftPlan) -> AdamW:
    matrices = [weight for weight in trained.values() if weight.dim() >= 2]
    vectors = [weight for weight in trained.values() if weight.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": plan.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return AdamW(groups, lr=plan.learning_rate, betas=plan.betas)


def _set_weights(into: Mapping[str, nn.Parameter], weights: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in weights.items():
            into[name].copy_(tensor)


def _point(entry: Mapping[str, Any]) -> HeldOut:
    spans = {name: SpanScore(**score) for name, score in entry["spans"].items()}
    return HeldOut(entry["step"], entry["loss"], spans)
