"""What models say about the tokens of a batch: logprobs, entropies, values. Read once, scored once.

Scores are computed for action tokens only, at the temperature that they were sampled with: at any
other, the probabilities are not those of the policy that played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dreamgym.errors import ConfigError
from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import torch
from dreamgym.train.batch import Row, TokenBatch, collate, plan_passes, plan_trunks
from dreamgym.train.critic import Critic
from dreamgym.train.decisions import full_precision, score_decisions
from dreamgym.train.tokens import Floats, TokenEpisode, TokenSequence


@dataclass(frozen=True, slots=True)
class Readout:
    """What was said about N action tokens."""

    logprobs_N: torch.Tensor
    entropies_N: torch.Tensor
    values_N: torch.Tensor | None = None


def read_tokens(
    model: CausalLM,
    batch: TokenBatch,
    *,
    temperature: float = 1.0,
    critic: Critic | None = None,
    entropy_gradient: bool = False,
) -> Readout:
    """Read a batch and score its action tokens.

    Entropies carry a gradient only where asked for, since that keeps another copy of all scores.
    """
    hidden = read_hidden(model, batch)
    before, written = batch.before(hidden), batch.written_W
    scores = full_precision(model.logits(before[written])) / temperature
    logprobs = torch.log_softmax(scores, dim=-1)
    said = logprobs.gather(1, batch.targets_N[written][:, None])[:, 0]
    shown = logprobs if entropy_gradient else logprobs.detach()
    doubts = -(shown.exp() * shown).sum(dim=-1)
    chosen = said.new_zeros(batch.tokens).index_copy(0, written, said)
    entropies = doubts.new_zeros(batch.tokens).index_copy(0, written, doubts)
    if batch.branches is not None:
        picked, doubt = score_decisions(model, hidden, batch.branches, temperature=temperature)
        places = batch.branches.decisions_D
        chosen = chosen.index_copy(0, places, picked)
        entropies = entropies.index_copy(0, places, doubt if entropy_gradient else doubt.detach())
    if critic is None:
        return Readout(chosen, entropies)
    if critic.body is not None:
        before = batch.before(critic.body.hidden(batch.ids_UT))
    values = full_precision(critic.head(before.detach() if critic.detached else before))
    return Readout(chosen, entropies, values)


def read_hidden(model: CausalLM, batch: TokenBatch) -> torch.Tensor:
    """Return the hidden states of a batch, [U, T, hidden], and of candidates to the right."""
    beside = batch.branches
    if beside is None:
        return model.hidden(batch.ids_UT)
    return model.hidden(torch.cat([batch.ids_UT, beside.ids_UB], dim=1), span=beside.span)


def score_sequences(
    model: CausalLM, sequences: Sequence[TokenSequence], *, temperature: float, budget: int
) -> list[Floats]:
    """Return the logprobs of every sequence's action tokens, without learning."""
    found: dict[int, Floats] = {}
    like = first_weight(model)
    with quiet(model):
        for numbers in plan_trunks(sequences, budget=budget):
            batch = collate([Row(sequences[number]) for number in numbers], like=like)
            scored = read_tokens(model, batch, temperature=temperature).logprobs_N
            counts = [len(sequences[number].logprobs) for number in numbers]
            found.update(zip(numbers, split(scored, counts), strict=True))
    return [found[number] for number in range(len(sequences))]


def judge_episodes(
    model: CausalLM, critic: Critic, episodes: Sequence[TokenEpisode], *, budget: int
) -> list[Floats]:
    """Return the value before every action token of each episode, and one after its last token."""
    body = critic.body or model
    rows = [(n, sequence) for n, episode in enumerate(episodes) for sequence in episode.sequences]
    before: dict[int, Floats] = {}
    after: dict[int, float] = {}
    like = first_weight(body)
    with quiet(body):
        for numbers in plan_passes([len(sequence.ids) for _, sequence in rows], budget=budget):
            batch = collate([Row(rows[number][1]) for number in numbers], like=like, choices=False)
            values = critic.head(body.hidden(batch.ids_UT))
            counts = [len(rows[number][1].logprobs) for number in numbers]
            before.update(zip(numbers, split(batch.before(values), counts), strict=True))
            for trunk, number in zip(batch.trunks_R.tolist(), numbers, strict=True):
                after[number] = float(values[trunk, len(rows[number][1].ids) - 1])
    found: list[list[Floats]] = [[] for _ in episodes]
    last = [0.0] * len(episodes)
    for number, (episode, _) in enumerate(rows):
        found[episode].append(before[number])
        last[episode] = after[number]
    return [np.concatenate([*parts, [end]]) for parts, end in zip(found, last, strict=True)]


@contextmanager
def quiet(model: CausalLM) -> Iterator[None]:
    """Read without gradients and without dropout; the model is left as it was."""
    was_training = bool(getattr(model, "training", False))
    model.train(False)
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def split(flat: torch.Tensor, counts: Sequence[int]) -> list[Floats]:
    """Cut a flat column into rows."""
    numbers = flat.detach().double().cpu().numpy()
    return np.split(numbers, np.cumsum(counts)[:-1])


def first_weight(model: CausalLM) -> torch.Tensor:
    """Return a weight, to put tensors where the model is and in its precision."""
    return next(model.parameters())


def check_lengths(model: CausalLM, sequences: Sequence[TokenSequence]) -> None:
    """Refuse sequences that the model cannot read: cutting them would change what was said."""
    longest = max((sequence.reach for sequence in sequences), default=0)
    if longest > model.positions:
        raise ConfigError(
            f"an episode of {longest} tokens, but the model reads {model.positions}: "
            "fewer steps, a shorter history window or a model with more positions"
        )
