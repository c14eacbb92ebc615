"""Losses by kind of text: what counts, how it is averaged, against a slow loop."""

from __future__ import annotations

import math
import random

import pytest
import torch

from dreamgym.models.llama import Llama
from dreamgym.models.losses import Tally, evaluate, predict
from dreamgym.models.samples import Sample, collate

NAMES = ["reasoning", "state", "flags"]
WEIGHTS = torch.tensor([0.0, 1.0, 2.0, 0.5])


def random_samples(count: int) -> list[Sample]:
    rng = random.Random(4)
    samples = []
    for _ in range(count):
        size = rng.randint(2, 30)
        prompt = rng.randint(0, size - 1)
        spans = (0,) * prompt + tuple(rng.randint(0, 3) for _ in range(size - prompt))
        samples.append(Sample(tuple(rng.randrange(97) for _ in range(size)), spans))
    return samples


def by_hand(model: Llama, samples: list[Sample]) -> dict[int, list[list[tuple[float, bool]]]]:
    """For each kind, for each sample: (loss, guessed) of every token that counts."""
    found: dict[int, list[list[tuple[float, bool]]]] = {1: [], 2: [], 3: []}
    for sample in samples:
        with torch.no_grad():
            logprobs = torch.log_softmax(model(torch.tensor([sample.ids]))[0], dim=-1)
        for kind in found:
            places = [n for n in range(1, len(sample.ids)) if sample.spans[n] == kind]
            tokens = [(n, sample.ids[n]) for n in places]
            found[kind].append(
                [
                    (-float(logprobs[n - 1, t]), int(logprobs[n - 1].argmax()) == t)
                    for n, t in tokens
                ]
            )
    return found


def test_losses_are_those_of_a_slow_loop(llama: Llama) -> None:
    samples = random_samples(12)
    right = by_hand(llama, samples)
    tally = evaluate(llama, samples, kinds=3, budget=100)
    scores = tally.scores(NAMES)
    total = weight = 0.0
    for kind, name in enumerate(NAMES, start=1):
        tokens = [pair for sample in right[kind] for pair in sample]
        losses = [loss for loss, _ in tokens]
        assert scores[name].tokens == len(tokens)
        assert scores[name].loss == pytest.approx(sum(losses) / len(losses), rel=1e-4)
        assert scores[name].accuracy == pytest.approx(sum(g for _, g in tokens) / len(tokens))
        present = [sample for sample in right[kind] if sample]
        whole = sum(all(guessed for _, guessed in sample) for sample in present)
        assert scores[name].exact == pytest.approx(whole / len(present))
        total += float(WEIGHTS[kind]) * sum(losses)
        weight += float(WEIGHTS[kind]) * len(losses)
    assert tally.mean_loss(WEIGHTS) == pytest.approx(total / weight, rel=1e-4)


def test_a_perfect_guesser_is_exact(llama: Llama) -> None:
    start = (1, 2, 3)
    from dreamgym.models.decode import Decoder, Query

    (answer,) = Decoder(llama).generate([Query(start, max_new=6)])
    sample = Sample(start + answer.ids, (0,) * 3 + (1,) * 6)
    score = evaluate(llama, [sample], kinds=1, budget=100).scores(["answer"])["answer"]
    assert (score.accuracy, score.exact, score.tokens) == (1.0, 1.0, 6)


def test_what_is_read_only_changes_no_weight(llama: Llama) -> None:
    """The gradient of a batch is that of its learnt tokens; filler and prompts add nothing."""
    samples = random_samples(5)
    model = llama
    model.zero_grad()
    predict(model, collate(samples)).weighted(WEIGHTS).backward()
    together = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    for sample in samples:
        predict(model, collate([sample])).weighted(WEIGHTS).backward()
    for one, other in zip(together, (w.grad for w in model.parameters()), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    model.zero_grad()


def test_kinds_that_do_not_occur_have_no_score(llama: Llama) -> None:
    tally = evaluate(llama, [Sample((1, 2, 3), (0, 0, 2))], kinds=3, budget=10)
    assert list(tally.scores(NAMES)) == ["state"]
    assert math.isnan(Tally(3).mean_loss(WEIGHTS))


def test_evaluation_leaves_the_model_in_the_mode_it_found(llama: Llama) -> None:
    for mode in (True, False):
        llama.train(mode)
        evaluate(llama, random_samples(2), kinds=3, budget=50)
        assert llama.training is mode
    llama.eval()
