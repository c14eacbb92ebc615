"""What models say about tokens: against a slow loop, one token at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_episodes import made_episode
from small_policy import small_llama

from dreamgym.errors import ConfigError
from dreamgym.train.batch import Row, collate
from dreamgym.train.critic import Critic, ValueHead, make_critic
from dreamgym.train.readout import check_lengths, judge_episodes, read_tokens, score_sequences
from dreamgym.train.tokens import READ, TokenEpisode, TokenSequence, Weaver
from dreamgym.types import SampledTokens

EPISODES = [
    made_episode([0, 1], lengths=[3, 1]),
    made_episode([0]),
    made_episode([0, 0, 1], lengths=[1, 2, 4]),
]
SEQUENCES = [sequence for episode in EPISODES for sequence in episode.sequences]


def by_hand(model, sequence: TokenSequence, temperature: float) -> list[tuple[float, float]]:
    """The logprob and the entropy of each action token, each from a reading of its own."""
    found = []
    for place, turn in enumerate(sequence.turns):
        if turn != READ:
            scores = model(torch.tensor([sequence.ids[:place]]))[0, -1] / temperature
            logprobs = torch.log_softmax(scores, -1)
            entropy = -(logprobs.exp() * logprobs).sum()
            found.append((logprobs[sequence.ids[place]].item(), entropy.item()))
    return found


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_logprobs_and_entropies_are_those_of_a_slow_loop(temperature):
    model = small_llama(spread=0.5)
    with torch.no_grad():
        said = read_tokens(model, collate([Row(s) for s in SEQUENCES]), temperature=temperature)
        slow = [pair for s in SEQUENCES for pair in by_hand(model, s, temperature)]
    assert said.logprobs_N.tolist() == pytest.approx([lp for lp, _ in slow], abs=1e-5)
    assert said.entropies_N.tolist() == pytest.approx([h for _, h in slow], abs=1e-5)


@pytest.mark.parametrize("budget", [1, 12, 10_000])
def test_scores_do_not_depend_on_what_goes_through_the_model_together(budget):
    model = small_llama(spread=0.5)
    found = score_sequences(model, SEQUENCES, temperature=0.7, budget=budget)
    with torch.no_grad():
        slow = [[lp for lp, _ in by_hand(model, s, 0.7)] for s in SEQUENCES]
    for row, expected in zip(found, slow, strict=True):
        assert row.tolist() == pytest.approx(expected, abs=1e-5)


def test_nothing_to_score_is_no_error():
    assert score_sequences(small_llama(), [], temperature=1.0, budget=10) == []


def strong_critic(body=None) -> Critic:
    critic = Critic(ValueHead(32, seed=3), body)
    with torch.no_grad():
        critic.head.out.weight.normal_(0, 1, generator=torch.Generator().manual_seed(1))
    return critic


@pytest.mark.parametrize("budget", [1, 10_000])
@pytest.mark.parametrize("own_body", [False, True])
def test_values_are_of_the_moment_before_each_token_and_after_the_last(budget, own_body):
    model = small_llama(spread=0.5)
    critic = strong_critic(small_llama(7, spread=0.5) if own_body else None)
    body = critic.body or model
    weaver = Weaver()
    weaver.add((1, 2), SampledTokens((3, 4), (-1.0, -1.0)))
    weaver.end((1, 2, 3, 4, 5, 6))
    left = TokenEpisode(weaver.sequences(), (0.0,), terminated=False)
    found = judge_episodes(model, critic, [*EPISODES, left], budget=budget)

    def value(ids):
        with torch.no_grad():
            return critic.head(body.hidden(torch.tensor([ids])))[0, -1].item()

    for episode, values in zip([*EPISODES, left], found, strict=True):
        (sequence,) = episode.sequences
        places = [n for n, turn in enumerate(sequence.turns) if turn != READ]
        expected = [value(sequence.ids[:place]) for place in places]
        assert values.tolist() == pytest.approx([*expected, value(sequence.ids)], abs=1e-5)
    assert found[-1][-1] == pytest.approx(value((1, 2, 3, 4, 5, 6)), abs=1e-5)


def test_values_while_learning_are_those_that_were_judged():
    model, critic = small_llama(spread=0.5), strong_critic()
    with torch.no_grad():
        said = read_tokens(model, collate([Row(s) for s in SEQUENCES]), critic=critic)
    judged = judge_episodes(model, critic, EPISODES, budget=50)
    expected = np.concatenate([values[:-1] for values in judged])
    assert said.values_N.tolist() == pytest.approx(expected, abs=1e-5)


def test_a_new_critic_says_nothing_and_a_detached_one_leaves_the_body_alone():
    model = small_llama()
    critic = make_critic(model)
    assert not np.concatenate(judge_episodes(model, critic, EPISODES, budget=50)).any()
    for detached in (False, True):
        critic = Critic(strong_critic().head, detached=detached)
        model.zero_grad(set_to_none=True)
        read_tokens(model, collate([Row(SEQUENCES[0])]), critic=critic).values_N.sum().backward()
        reached = any(w.grad is not None for w in model.parameters())
        assert reached is not detached
        assert critic.head.out.weight.grad.any()


def test_an_episode_that_does_not_fit_is_refused_not_cut():
    model = small_llama()
    with pytest.raises(ConfigError, match="an episode of 71 tokens, but the model reads 64"):
        check_lengths(model, [made_episode([0], lengths=[70]).sequences[0]])
