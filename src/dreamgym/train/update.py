"""The updater: minibatches, passes that add up exactly, epochs, an early end, and their figures.

The same for every algorithm and objective. Everything is determined by weights, episodes, plan and
step. A loss is normalised by its whole minibatch, never by the pass that happens to hold a token:
what goes through the model at once is a matter of memory and changes nothing but rounding.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dreamgym.errors import ConfigError
from dreamgym.models.adamw import AdamW
from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import nn, torch
from dreamgym.train.algorithms import Credit, CreditedEpisode
from dreamgym.train.batch import Columns, Row, collate, plan_passes, plan_trunks
from dreamgym.train.critic import Critic
from dreamgym.train.figures import UpdateFigures
from dreamgym.train.objectives import (
    CloningObjective,
    Objective,
    PolicyObjective,
    PreferenceObjective,
)
from dreamgym.train.readout import (
    check_lengths,
    first_weight,
    judge_episodes,
    read_tokens,
    score_sequences,
)
from dreamgym.train.tokens import Floats, TokenEpisode, TokenGroup
from dreamgym.types import derive_seed

logger = logging.getLogger(__name__)

Unit = tuple[Row, ...]
"""What is never divided between minibatches: the sequences of an episode, or of a pair."""
Pair = tuple[TokenEpisode, TokenEpisode]
"""A better and a worse episode of the same task."""


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """How to make updates. The defaults suit the small models from scratch."""

    epochs: int = 1
    minibatches: int = 1
    """Steps of the optimiser per epoch; fewer where there are fewer episodes."""
    tokens_per_pass: int = 8192
    """What goes through the model at once, filler included."""
    learning_rate: float = 2e-4
    critic_rate: float = 1.0
    """The critic's learning rate as a multiple of the policy's."""
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    clip: float = 1.0
    """The longest gradient, of the policy and of what is the critic's alone."""
    kl_stop: float | None = None
    """End the update before a step whose minibatch finds the policy further than this from the one
    that played."""
    temperature: float = 1.0
    """At which actions were sampled."""
    recompute: bool = False
    """Score actions anew before learning, instead of taking the logprobs of the sampler's word: for
    samplers that compute otherwise than the model does."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        for name in ("epochs", "minibatches", "tokens_per_pass"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("learning_rate", "critic_rate", "clip", "temperature"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")


class Learner:
    """Changes a model's weights. Holds the optimiser; not for use by two threads at once."""

    def __init__(
        self,
        model: CausalLM,
        plan: UpdatePlan,
        *,
        critic: Critic | None = None,
        reference: CausalLM | None = None,
    ) -> None:
        """Set up.

        Args:
            model: the policy; only weights that require gradients change.
            plan: how.
            critic: for PPO.
            reference: a policy to stay near, for KL and for preferences; never changed.
        """
        self._model, self._plan, self._critic, self._reference = model, plan, critic, reference
        self._trained = trained_weights(model, critic)
        self._optimizer = make_optimizer(self._trained, plan)

    def values(self, groups: Sequence[TokenGroup]) -> list[list[Floats]]:
        """Return the critic's values of all episodes, as `Algorithm.credit` takes them."""
        if self._critic is None:
            raise ConfigError("values need a critic: make the learner with one")
        every = [episode for group in groups for episode in group.episodes]
        judged = [episode for episode in every if not episode.failed]
        check_lengths(self._model, [s for episode in judged for s in episode.sequences])
        budget = self._plan.tokens_per_pass
        found = iter(judge_episodes(self._model, self._critic, judged, budget=budget))
        nothing = np.zeros(1)
        return [[nothing if e.failed else next(found) for e in g.episodes] for g in groups]

    def improve(
        self,
        credit: Credit,
        objective: PolicyObjective,
        *,
        step: int,
        learning_rate: float | None = None,
    ) -> dict[str, float]:
        """Make the actions that were worth more likelier. Returns figures, the credit's too."""
        _check_sampled(one.episode for one in credit.episodes)
        if objective.kl_coefficient and self._reference is None:
            raise ConfigError("a KL coefficient needs a reference policy to stay near")
        if self._critic is None and any(one.returns is not None for one in credit.episodes):
            raise ConfigError("these episodes are for a critic to learn from: there is none")
        # Dropout would make the policy that learns another one than the policy that played.
        self._model.train(False)
        units = [_rows(one) for one in credit.episodes]
        figures = self._update(self._complete(units), objective, step=step, rate=learning_rate)
        return {**credit.metrics, **figures}

    def clone(
        self,
        episodes: Sequence[TokenEpisode],
        objective: CloningObjective | None = None,
        *,
        step: int,
        learning_rate: float | None = None,
    ) -> dict[str, float]:
        """Learn to say what was said in these episodes, whoever said it."""
        self._model.train(True)
        units = [tuple(map(Row, episode.sequences)) for episode in episodes if not episode.failed]
        chosen = objective or CloningObjective()
        figures = self._update(units, chosen, step=step, rate=learning_rate)
        self._model.train(False)
        return figures

    def prefer(
        self,
        pairs: Sequence[Pair],
        objective: PreferenceObjective | None = None,
        *,
        step: int,
        learning_rate: float | None = None,
    ) -> dict[str, float]:
        """Make the better episode of each pair likelier than the worse."""
        if self._reference is None:
            raise ConfigError("preferences need a reference policy: the one to start from")
        if any(episode.failed for pair in pairs for episode in pair):
            raise ValueError("a failed episode is neither better nor worse than another")
        self._model.train(False)
        units = [
            tuple(
                Row(sequence, sign=sign)
                for episode, sign in zip(pair, (1.0, -1.0), strict=True)
                for sequence in episode.sequences
            )
            for pair in pairs
        ]
        chosen = objective or PreferenceObjective()
        return self._update(self._referred(units), chosen, step=step, rate=learning_rate)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return all that a checkpoint must hold: weights, the critic's too, and moments."""
        found = {f"model/{name}": weight.detach() for name, weight in self._trained.items()}
        for name, weight in self._trained.items():
            for key, value in self._optimizer.state[weight].items():
                found[f"adam/{key}/{name}"] = value
        return found

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from a checkpoint."""
        missing = [name for name in self._trained if f"model/{name}" not in tensors]
        if missing:
            raise ConfigError(f"the checkpoint is of another model: it has no {missing[0]}")
        # A checkpoint from before the first update has no moments; nor has the learner then.
        self._optimizer.state.clear()
        with torch.no_grad():
            for path, tensor in tensors.items():
                kind, _, name = path.partition("/")
                if kind == "model":
                    self._trained[name].copy_(tensor)
                else:
                    key, _, name = name.partition("/")
                    self._optimizer.state[self._trained[name]][key] = tensor.clone()

    def _complete(self, units: list[Unit]) -> list[Unit]:
        """Add the logprobs that an update compares with."""
        if self._plan.recompute:
            units = self._scored(self._model, units, "old")
        return self._referred(units)

    def _referred(self, units: list[Unit]) -> list[Unit]:
        return (
            units if self._reference is None else self._scored(self._reference, units, "reference")
        )

    def _scored(self, model: CausalLM, units: list[Unit], column: str) -> list[Unit]:
        sequences = [row.sequence for unit in units for row in unit]
        check_lengths(model, sequences)
        plan = self._plan
        found = score_sequences(
            model, sequences, temperature=plan.temperature, budget=plan.tokens_per_pass
        )
        rest = iter(found)
        return [
            tuple(
                replace(row, columns=replace(row.columns, **{column: next(rest)})) for row in unit
            )
            for unit in units
        ]

    def _update(
        self, units: list[Unit], objective: Objective, *, step: int, rate: float | None
    ) -> dict[str, float]:
        plan = self._plan
        check_lengths(self._model, [row.sequence for unit in units for row in unit])
        rate = plan.learning_rate if rate is None else rate
        for group in self._optimizer.param_groups:
            group["lr"] = rate * (plan.critic_rate if group["critic"] else 1.0)
        figures = UpdateFigures()
        for epoch in range(plan.epochs):
            seed = derive_seed(plan.seed, "update", step, epoch)
            for number, part in enumerate(deal(units, plan.minibatches, seed=seed)):
                with torch.random.fork_rng(devices=[]):
                    # Dropout, where a model has it, is the same whenever this step is made.
                    torch.manual_seed(derive_seed(seed, number))
                    moved = self._add_gradients(part, objective, figures)
                if plan.kl_stop is not None and moved > plan.kl_stop:
                    self._optimizer.zero_grad()
                    return {**figures.means(), "actor/kl_stopped": 1.0, "actor/lr": rate}
                self._move(figures)
        return {**figures.means(), "actor/kl_stopped": 0.0, "actor/lr": rate}

    def _add_gradients(
        self, units: Sequence[Unit], objective: Objective, figures: UpdateFigures
    ) -> float:
        """Add up a minibatch's gradients; return how far the policy is from the one that played."""
        rows = [row for unit in weighed(units, objective) for row in unit]
        figures.open()
        self._optimizer.zero_grad()
        for part in cut(rows, objective, budget=self._plan.tokens_per_pass):
            batch = collate(part, like=first_weight(self._model))
            said = read_tokens(
                self._model,
                batch,
                temperature=self._plan.temperature,
                critic=self._critic if batch.returns_N is not None else None,
                entropy_gradient=objective.entropy_gradient,
            )
            loss = objective.loss(said, batch)
            torch.autograd.backward(loss.total)
            figures.add(loss)
        return figures.latest("actor/ppo_kl")

    def _move(self, figures: UpdateFigures) -> None:
        """Make a step, unless the gradient is broken: such a step would break every weight."""
        norms = {}
        for who, chosen in (("actor", True), ("critic", False)):
            weights = [
                w for name, w in self._trained.items() if name.startswith("policy.") == chosen
            ]
            if weights:
                norms[who] = float(nn.utils.clip_grad_norm_(weights, self._plan.clip))
        if all(map(math.isfinite, norms.values())):
            self._optimizer.step()
            # A fused step does not count as a change, by which a decoder notices that what it
            # remembers is of other weights.
            torch.autograd.graph.increment_version(list(self._trained.values()))
        else:
            logger.warning("gradients of lengths %s: the step is not made", norms)
        figures.note_step(norms)


def deal(units: Sequence[Unit], hands: int, *, seed: int) -> Iterator[list[Unit]]:
    """Shuffle units and deal them out to minibatches whose sizes differ by one at most."""
    order = list(range(len(units)))
    random.Random(seed).shuffle(order)
    hands = min(hands, len(order))
    for hand in range(hands):
        yield [units[number] for number in sorted(order[hand::hands])]


def weighed(units: Sequence[Unit], objective: Objective) -> list[Unit]:
    """Give every row of a minibatch the weight of its tokens, and the number of its unit."""
    counts = [sum(len(row.sequence.logprobs) for row in unit) for unit in units]
    return [
        tuple(replace(row, weight=weight, unit=number) for row in unit)
        for number, (unit, weight) in enumerate(zip(units, objective.weigh(counts), strict=True))
    ]


def cut(rows: Sequence[Row], objective: Objective, *, budget: int) -> Iterator[list[Row]]:
    """Cut a minibatch's rows into passes.

    A pair stays together where the objective needs it; otherwise what is read once does.
    """
    if not objective.in_pairs:
        for numbers in plan_trunks([row.sequence for row in rows], budget=budget):
            yield [rows[number] for number in numbers]
        return
    bundles: dict[int, list[Row]] = {}
    for row in rows:
        bundles.setdefault(row.unit, []).append(row)
    kept = list(bundles.values())
    sizes = [len(bundle) * max(row.sequence.size for row in bundle) for bundle in kept]
    for numbers in plan_passes(sizes, budget=budget):
        yield [row for number in numbers for row in kept[number]]


def preference_pairs(groups: Iterable[TokenGroup]) -> list[Pair]:
    """Pair each group's best episode with its worst, where one is better than the other."""
    found = []
    for group in groups:
        ranked = sorted(group.valid, key=lambda episode: sum(episode.rewards))
        if ranked and sum(ranked[0].rewards) < sum(ranked[-1].rewards):
            found.append((ranked[-1], ranked[0]))
    return found


def trained_weights(model: CausalLM, critic: Critic | None) -> dict[str, nn.Parameter]:
    """Return the weights that learning changes, by name: `policy.`, `head.` and `body.`."""
    found = {f"policy.{name}": weight for name, weight in model.named_parameters()}
    if critic is not None:
        found |= {f"head.{name}": weight for name, weight in critic.head.named_parameters()}
    if critic is not None and critic.body is not None:
        found |= {f"body.{name}": weight for name, weight in critic.body.named_parameters()}
    return {name: weight for name, weight in found.items() if weight.requires_grad}


def make_optimizer(trained: dict[str, nn.Parameter], plan: UpdatePlan) -> AdamW:
    """Make AdamW: weights decay if they are matrices, and the critic has a rate of its own."""
    sorts: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, weight in trained.items():
        sorts.setdefault((not name.startswith("policy."), weight.dim() >= 2), []).append(weight)
    groups = [
        {"params": weights, "critic": critic, "weight_decay": plan.weight_decay * matrix}
        for (critic, matrix), weights in sorts.items()
    ]
    return AdamW(groups, lr=plan.learning_rate, betas=plan.betas)


def _rows(one: CreditedEpisode) -> Unit:
    """Return an episode's rows, each with its part of the episode's columns."""
    old = np.array([p for sequence in one.episode.sequences for p in sequence.logprobs])
    whole = Columns(old, advantages=one.advantages, returns=one.returns, values=one.values)
    rows, start = [], 0
    for sequence in one.episode.sequences:
        stop = start + len(sequence.logprobs)
        rows.append(Row(sequence, whole.part(start, stop)))
        start = stop
    return tuple(rows)


def _check_sampled(episodes: Iterable[TokenEpisode]) -> None:
    if any(not episode.sampled for episode in episodes):
        raise ValueError(
            "an episode's actions were not sampled from the policy: its logprobs mean nothing. "
            "Demonstrations are for `clone` and `prefer`"
        )
