"""Learning from preferences: won against lost recorded episodes of one task (the DPO baseline).

Nothing is played. Which pairs an update sees follows from its number, so a run that was killed goes
on from its last checkpoint as if nothing had been.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dreamgym.agents.policy_card import PolicyCard
from dreamgym.errors import ConfigError
from dreamgym.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from dreamgym.train.demonstrations import episode_sequences
from dreamgym.train.objectives import PreferenceObjective
from dreamgym.train.policy_fit import PolicyModel
from dreamgym.train.readout import score_sequences
from dreamgym.train.tokens import TokenEpisode, make_episode
from dreamgym.train.update import Learner, Pair
from dreamgym.types import Source, Split, Trajectory, derive_seed

Recorded = tuple[Trajectory, Trajectory]
"""A won and a lost episode of the same task."""
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class PreferencePlan:
    """How long, and in what portions."""

    steps: int
    pairs_per_step: int = 16
    beta: float = 0.1
    learning_rate: float = 1e-4
    warmup_steps: int = 5
    look_every: int = 10
    """Updates between looks at the held-out pairs, and between checkpoints."""
    tokens_per_pass: int = 8192
    seed: int = 0


def find_pairs(recorded: Iterable[Trajectory], *, count: int, seed: int) -> list[Recorded]:
    """Return every lost real episode of the train split beside the best won one of its task.

    The best is the one with the fewest refused actions, then with the fewest at all. Tasks that
    were only won or only lost teach nothing. `count` keeps so many, drawn by the seed; 0 all.
    """
    won: dict[str, Trajectory] = {}
    lost: list[Trajectory] = []
    for one in recorded:
        real = one.provenance.source is Source.REAL and one.task.split is Split.TRAIN
        if not real or one.error is not None or not one.steps:
            continue
        if not one.success:
            lost.append(one)
        elif one.task.id not in won or _effort(one) < _effort(won[one.task.id]):
            won[one.task.id] = one
    pairs = [(won[one.task.id], one) for one in lost if one.task.id in won]
    pairs.sort(key=lambda pair: derive_seed(seed, "pair", pair[1].id))
    if not pairs or len(pairs) < count:
        raise ConfigError(
            f"{count or 'some'} pairs of a won and a lost episode of the same task are wanted, "
            f"the store has {len(pairs)} ({len(won)} tasks won, {len(lost)} episodes lost). Set "
            "dpo.pairs, or record tasks several times: dreamgym collect --policy mixed --tasks N"
        )
    return pairs[: count or len(pairs)]


def _effort(one: Trajectory) -> tuple[int, int, str]:
    return sum(step.result.refused for step in one.steps), len(one.steps), one.id


def split_pairs(
    pairs: Sequence[Recorded], *, share: float, seed: int
) -> tuple[list[Recorded], list[Recorded]]:
    """Return what is learnt and what is held out, no task in both; at least one task is learnt."""
    tasks = sorted({won.task.id for won, _ in pairs}, key=lambda name: derive_seed(seed, name))
    held = set(tasks[: min(round(share * len(tasks)), len(tasks) - 1)])
    return (
        [pair for pair in pairs if pair[0].task.id not in held],
        [pair for pair in pairs if pair[0].task.id in held],
    )


def token_pairs(pairs: Sequence[Recorded], policy: PolicyModel, card: PolicyCard) -> list[Pair]:
    """Return the pairs as the policy would have read and written them."""
    return [(_tokens(won, policy, card), _tokens(lost, policy, card)) for won, lost in pairs]


def _tokens(one: Trajectory, policy: PolicyModel, card: PolicyCard) -> TokenEpisode:
    # Whoever played may have sampled other tokens: what counts is how this policy would say it.
    steps = tuple(replace(step, action=replace(step.action, tokens=None)) for step in one.steps)
    bare = replace(one, steps=steps)
    sequences = episode_sequences(
        bare, policy.tokenizer, card=card, positions=policy.model.positions
    )
    return make_episode(bare, sequences, sampled=False)


def learn_preferences(
    learner: Learner,
    pairs: Sequence[Pair],
    plan: PreferencePlan,
    *,
    look: Callable[[], Figures] = dict,
    folder: Path | None = None,
    on_row: Callable[[int, Figures], None] = lambda step, figures: None,
) -> None:
    """Make updates until the plan is fulfilled.

    Args:
        learner: with the policy that it starts from as its reference.
        pairs: to learn from.
        plan: how long.
        look: returns figures of the held-out pairs.
        folder: for checkpoints. Where it holds one, learning goes on from there.
        on_row: gets the figures after each update, and before the first.
    """
    found = load_checkpoint(folder) if folder is not None else None
    first = found.step if found else 0
    if found is not None:
        learner.load_tensors(found.tensors)
    else:
        on_row(0, look())
    objective = PreferenceObjective(beta=plan.beta)
    for step in range(first, plan.steps):
        rate = plan.learning_rate * min(1.0, (step + 1) / max(1, plan.warmup_steps))
        chosen = batch_of(pairs, step, size=plan.pairs_per_step, seed=plan.seed)
        figures = learner.prefer(chosen, objective, step=step, learning_rate=rate)
        last = step + 1 == plan.steps
        if last or (step + 1) % plan.look_every == 0:
            figures |= look()
        on_row(step + 1, figures)
        if folder is not None and (last or (step + 1) % plan.look_every == 0):
            save_checkpoint(folder, Checkpoint(step + 1, learner.tensors(), {}))


def batch_of(pairs: Sequence[Pair], step: int, *, size: int, seed: int) -> list[Pair]:
    """Return the pairs of an update: each epoch goes through all in an order of its own."""
    chosen, size = [], min(size, len(pairs))
    for place in range(step * size, (step + 1) * size):
        epoch, number = divmod(place, len(pairs))
        order = list(range(len(pairs)))
        random.Random(derive_seed(seed, "pairs", epoch)).shuffle(order)
        chosen.append(pairs[order[number]])
    return chosen


def judge_pairs(
    policy: PolicyModel, reference: PolicyModel, pairs: Sequence[Pair], plan: PreferencePlan
) -> Figures:
    """Return how many pairs the policy tells apart, by more than the reference did, and margins."""
    if not pairs:
        return {}
    flat = [one for pair in pairs for one in pair]
    sequences = [sequence for one in flat for sequence in one.sequences]
    told: list[float] = []
    for model in (policy.model, reference.model):
        scores = score_sequences(
            model, sequences, temperature=1.0, budget=plan.tokens_per_pass
        )  # fmt: skip
        rest = iter(scores)
        told += [sum(float(next(rest).sum()) for _ in one.sequences) for one in flat]
    gains = [
        ours - theirs for ours, theirs in zip(told[: len(flat)], told[len(flat) :], strict=True)
    ]
    margins = [better - worse for better, worse in zip(gains[::2], gains[1::2], strict=True)]
    likelier = [told[place] > told[place + 1] for place in range(0, len(flat), 2)]
    count = len(pairs)
    return {
        "dpo/held_out_accuracy": sum(margin > 0 for margin in margins) / count,
        "dpo/held_out_margin": plan.beta * sum(margins) / count,
        "dpo/held_out_likelier": sum(likelier) / count,
        "dpo/held_out_won_logprob": sum(gains[::2]) / count,
    }
