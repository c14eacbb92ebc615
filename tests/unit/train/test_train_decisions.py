"""Choices among candidates: scored beside their episode as each would be alone, and learnt from."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_policy import ASK, WORDS, mean_reward, small_llama, tasks

from dreamgym.models.decode import Decoder
from dreamgym.models.scoring import Choice
from dreamgym.train.algorithms import Grpo, Ppo
from dreamgym.train.batch import Row, collate
from dreamgym.train.critic import make_critic
from dreamgym.train.decisions import lay_branches, trunk_of
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.readout import check_lengths, judge_episodes, read_tokens, score_sequences
from dreamgym.train.tokens import (
    READ,
    Decision,
    TokenEpisode,
    TokenGroup,
    TokenSequence,
    Weaver,
)
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import SampledTokens, derive_seed


def woven() -> TokenSequence:
    """A written action, a choice among three, and one among two, of different lengths."""
    weaver = Weaver()
    weaver.add((1, 2), SampledTokens((3, 4), (-0.5, -0.6)))
    weaver.choose((1, 2, 3, 4, 5), ((6, 7), (6,), (8, 9, 3)), chosen=2, logprob=-0.7)
    weaver.choose((1, 2, 3, 4, 5, 8, 9, 3, 2), ((4,), (5, 5, 5, 5)), chosen=0, logprob=-0.8)
    weaver.end((1, 2, 3, 4, 5, 8, 9, 3, 2, 4, 1))
    (sequence,) = weaver.sequences()
    return sequence


def test_a_choice_is_one_action_token_and_its_candidates_go_along():
    assert woven() == TokenSequence(
        ids=(1, 2, 3, 4, 5, 8, 9, 3, 2, 4, 1),
        turns=(READ, READ, 0, 0, READ, 1, READ, READ, READ, 2, READ),
        logprobs=(-0.5, -0.6, -0.7, -0.8),
        decisions=(
            Decision(5, ((6, 7), (6,), (8, 9, 3)), 2),
            Decision(9, ((4,), (5, 5, 5, 5)), 0),
        ),
    )
    assert woven().size == 11 + (1 + 0 + 2) + (0 + 3)
    assert woven().reach == 9 + 4


def test_a_choice_that_does_not_stand_there_is_refused():
    with pytest.raises(ValueError, match="not what stands there"):
        replace(woven(), decisions=(Decision(5, ((6, 7),), 0),))
    with pytest.raises(ValueError, match="a token at least"):
        Weaver().choose((1,), ((2,), ()), chosen=0, logprob=-1.0)


def slow(model, sequence: TokenSequence, temperature: float) -> list[tuple[float, float]]:
    """Logprob and entropy of every action token, each candidate read alone after its prompt."""
    found = []
    decisions = {decision.place: decision for decision in sequence.decisions}

    def logprobs(ids):
        return torch.log_softmax(model(torch.tensor([ids]))[0].double(), -1)

    for place, turn in enumerate(sequence.turns):
        before = sequence.ids[:place]
        if turn != READ and place in decisions:
            scores = []
            for ids in decisions[place].candidates:
                said = logprobs(before + ids)
                steps = enumerate(ids, start=place - 1)
                scores.append(sum(said[n, token].item() for n, token in steps) / temperature)
            table = torch.log_softmax(torch.tensor(scores), -1)
            chosen = table[decisions[place].chosen].item()
        elif turn != READ:
            scores = model(torch.tensor([before]))[0, -1] / temperature
            table = torch.log_softmax(scores, -1)
            chosen = table[sequence.ids[place]].item()
        else:
            continue
        found.append((chosen, -(table.exp() * table).sum().item()))
    return found


def alike() -> TokenSequence:
    """Choices whose candidates begin like each other, and like the one that was chosen."""
    weaver = Weaver()
    weaver.choose(
        (1, 2), ((8, 9, 3), (8, 9, 4), (8, 5, 1, 2), (8, 5, 1, 3)), chosen=0, logprob=-0.7
    )
    weaver.choose((1, 2, 8, 9, 3, 6), ((4, 4), (4,), (4, 4, 7, 7)), chosen=1, logprob=-0.8)
    (sequence,) = weaver.sequences()
    return sequence


def test_what_begins_alike_is_read_once():
    sequences = [woven(), alike()]
    trunks = {trunk_of(one): number for number, one in enumerate(sequences)}
    assert [len(trunk.ids) for trunk in trunks] == [9, 6], "up to the last choice"
    laid = lay_branches(sequences, trunks, main=9)
    assert laid.ids_UB.tolist() == [[6, 5, 5, 5, 0], [5, 1, 4, 4, 7]]
    assert laid.span.positions[:, 9:].tolist() == [[5, 9, 10, 11, 0], [3, 4, 6, 7, 8]]


def forked(chosen: int, prompt=(1, 2, 5)) -> TokenSequence:
    """A choice among three and nothing after it, as where a policy is shown no earlier turn."""
    weaver = Weaver()
    weaver.choose(prompt, ((6, 7), (6, 8, 9), (3,)), chosen=chosen, logprob=-0.4)
    (sequence,) = weaver.sequences()
    return sequence


def test_episodes_that_stood_before_the_same_choice_are_one_reading():
    rows = [forked(0), woven(), forked(1), forked(2, (1, 2, 4)), forked(1)]
    batch = collate([Row(one) for one in rows])
    assert batch.trunks_R.tolist() == [0, 1, 0, 2, 0]
    assert batch.branches.known_FC.shape[0] == 1 + 2 + 1
    assert batch.branches.forks_D.tolist() == [0, 1, 2, 0, 3, 0]
    assert batch.branches.chosen_D.tolist() == [0, 2, 0, 1, 2, 1]


def test_gradients_are_those_of_rows_read_one_by_one():
    rows = [forked(0), forked(1), alike(), forked(1), forked(2, (1, 2, 4))]
    model, worth = small_llama(spread=0.5).double(), iter((1.0, -0.5, 0.3, 0.7, 2.0, -1.0))
    worths = [[next(worth) for _ in one.logprobs] for one in rows]

    def gradient(parts):
        model.zero_grad(set_to_none=True)
        for numbers in parts:
            batch = collate([Row(rows[n]) for n in numbers], like=torch.zeros(1).double())
            values = torch.tensor([w for n in numbers for w in worths[n]]).double()
            (values * read_tokens(model, batch).logprobs_N).sum().backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters()])

    together = gradient([range(len(rows))])
    apart = gradient([[number] for number in range(len(rows))])
    assert torch.allclose(together, apart, rtol=1e-9, atol=1e-12)
    assert together.abs().max() > 1e-3


def test_pieces_see_what_a_mask_over_everything_shows(monkeypatch):
    monkeypatch.setattr("dreamgym.train.decisions.PIECE", 2)
    model, rows = small_llama(spread=0.5), [woven(), alike()]
    batch = collate([Row(sequence) for sequence in rows])
    ids = torch.cat([batch.ids_UT, batch.branches.ids_UB], dim=1)
    span = batch.branches.span
    assert len(span.pieces) == 4
    with torch.no_grad():
        masked = model.hidden(ids, span=replace(span, mask=span.whole_mask, pieces=()))
        assert torch.allclose(model.hidden(ids, span=span), masked, atol=1e-5)


def test_choices_among_single_words_need_no_branch():
    weaver = Weaver()
    weaver.choose((1, 2), ((3,), (4,)), chosen=1, logprob=-0.7)
    (short,) = weaver.sequences()
    model, batch = small_llama(spread=0.5), collate([Row(short)])
    assert batch.branches.ids_UB.shape == (1, 0)
    assert batch.branches.span.whole_mask is None
    with torch.no_grad():
        said = read_tokens(model, batch)
        ((expected, _),) = slow(model, short, 1.0)
    assert said.logprobs_N.tolist() == pytest.approx([expected], abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_scores_are_those_of_each_candidate_alone(temperature):
    model = small_llama(spread=0.5)
    plain = TokenSequence((1, 2, 3), (READ, READ, 0), (-1.0,))
    rows = [plain, woven(), alike(), replace(woven(), ids=(7, *woven().ids[1:]))]
    with torch.no_grad():
        said = read_tokens(model, collate([Row(s) for s in rows]), temperature=temperature)
        expected = [pair for s in rows for pair in slow(model, s, temperature)]
    assert said.logprobs_N.tolist() == pytest.approx([p for p, _ in expected], abs=1e-5)
    assert said.entropies_N.tolist() == pytest.approx([h for _, h in expected], abs=1e-5)


@pytest.mark.parametrize("budget", [1, 40, 1000])
def test_scores_and_values_do_not_depend_on_the_company(budget):
    model = small_llama(spread=0.5)
    rows = [woven(), TokenSequence((1, 2, 3), (READ, READ, 0), (-1.0,)), woven()]
    found = score_sequences(model, rows, temperature=1.0, budget=budget)
    with torch.no_grad():
        for sequence, scores in zip(rows, found, strict=True):
            expected = [p for p, _ in slow(model, sequence, 1.0)]
            assert scores.tolist() == pytest.approx(expected, abs=1e-5)
    critic = make_critic(model)
    with torch.no_grad():
        critic.head.out.weight.normal_(0, 1, generator=torch.Generator().manual_seed(1))
        episode = TokenEpisode((woven(),), (0.0, 0.0, 1.0))
        (values,) = judge_episodes(model, critic, [episode], budget=budget)
        places = [n for n, turn in enumerate(woven().turns) if turn != READ]
        for place, value in zip([*places, len(woven().ids)], values, strict=True):
            hidden = model.hidden(torch.tensor([woven().ids[:place]]))
            assert critic.head(hidden)[0, -1].item() == pytest.approx(value, abs=1e-5)


def test_candidates_that_need_more_positions_than_there_are_are_refused():
    model = small_llama()
    weaver = Weaver()
    weaver.choose((1,) * 60, ((2,), (3,) * 10), chosen=0, logprob=-1.0)
    with pytest.raises(ValueError, match="70 tokens, but the model reads 64"):
        check_lengths(model, weaver.sequences())


CANDIDATES = tuple((word, 8) for word in WORDS)
"""Words to choose from, each with a token that ends it."""


def choose(model, asked, *, members: int, seed: int) -> list[TokenGroup]:
    """Play the task of saying what is shown, by choosing among the words."""
    decoder = Decoder(model, memory_mb=0, steady=False)
    weavers = {(t, m): Weaver() for t in range(len(asked)) for m in range(members)}
    prompts = dict.fromkeys(weavers, ())
    right = {slot: [] for slot in weavers}
    for turn in range(len(asked[0])):
        for slot in weavers:
            prompts[slot] = (*prompts[slot], ASK, asked[slot[0]][turn])
        scores = decoder.score([Choice(prompts[slot], CANDIDATES) for slot in weavers])
        for (slot, weaver), table in zip(weavers.items(), scores, strict=True):
            logits = np.array([sum(tokens) for tokens in table])
            logprobs = logits - np.logaddexp.reduce(logits)
            rng = random.Random(derive_seed(seed, *slot, turn))
            (number,) = rng.choices(range(len(CANDIDATES)), weights=np.exp(logprobs))
            weaver.choose(prompts[slot], CANDIDATES, chosen=number, logprob=float(logprobs[number]))
            prompts[slot] = (*prompts[slot], *CANDIDATES[number])
            right[slot].append(WORDS[number] == asked[slot[0]][turn])
    return [
        TokenGroup(
            str(t),
            tuple(
                TokenEpisode(
                    weavers[t, m].sequences(), tuple(hit / len(asked[0]) for hit in right[t, m])
                )
                for m in range(members)
            ),
        )
        for t in range(len(asked))
    ]


@pytest.mark.parametrize("algorithm", [Grpo(), Ppo()], ids=["grpo", "ppo"])
def test_an_agent_that_chooses_learns_by_the_same_algorithms(algorithm):
    model = small_llama(1)
    learner = Learner(
        model,
        UpdatePlan(epochs=2, minibatches=2, learning_rate=3e-3),
        critic=make_critic(model) if algorithm.needs_values else None,
        reference=copy.deepcopy(model),
    )
    earned = []
    for step in range(10):
        groups = choose(model, tasks(12, derive_seed("t", step)), members=6, seed=step)
        earned.append(mean_reward(groups))
        values = learner.values(groups) if algorithm.needs_values else None
        objective = PolicyObjective(entropy_coefficient=0.001, kl_coefficient=0.001)
        figures = learner.improve(algorithm.credit(groups, values), objective, step=step)
        if step == 0:
            assert figures["actor/mismatch_kl"] == pytest.approx(0, abs=1e-8)
    assert earned[0] < 0.35
    assert earned[-1] > 0.75


def test_updates_of_choices_are_the_same_in_however_many_passes():
    groups = choose(small_llama(spread=0.5), tasks(4, 3), members=4, seed=2)
    found = []
    for budget in (1, 100_000):
        learner = Learner(
            small_llama(spread=0.5).double(),
            UpdatePlan(learning_rate=1e-2, tokens_per_pass=budget, epochs=2),
        )
        learner.improve(Grpo().credit(groups), PolicyObjective(entropy_coefficient=0.1), step=0)
        found.append(learner.tensors())
    assert found[0].keys() == found[1].keys()
    for name, tensor in found[0].items():
        assert torch.allclose(tensor, found[1][name], atol=1e-9), name
