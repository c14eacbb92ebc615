"""The first weights hold a circuit that copies: it works untrained, and learns with the rest."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.samples import Sample
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan
from dreamgym.models.start import OFFSETS, set_start_weights
from dreamgym.models.tiny import make_tiny

VOCAB = 200


@torch.no_grad()
def attention(model: Llama, ids: torch.Tensor, layer: int) -> torch.Tensor:
    """Return how much each token of a layer attends to each: [heads, tokens, tokens]."""
    x = model.embed(ids)
    from dreamgym.models.cache import Span
    from dreamgym.models.llama import rotate

    span = Span(torch.arange(ids.shape[1])[None], None)
    turn = model.turns[span.positions][:, :, None]
    for number in range(layer):
        x = model.block(number)(x, turn, cache=None, span=span)
    shape, block = model.shape, model.block(layer)
    heads = block.qkv(block.attention_norm(x)).view(*ids.shape, -1, shape.head_dim)
    turned = rotate(heads[:, :, : 2 * shape.heads], turn)
    q, k = turned.split(shape.heads, dim=2)
    scores = torch.einsum("rthd,rshd->rhts", q, k)[0] / shape.head_dim**0.5
    hidden = torch.ones_like(scores[0]).triu(1).bool()
    return scores.masked_fill(hidden, float("-inf")).softmax(-1)


@pytest.fixture(scope="module")
def model() -> Llama:
    return make_tiny("1m", VOCAB, seed=3, positions=512)


def words(count: int, seed: int = 0) -> list[int]:
    return random.Random(seed).sample(range(VOCAB), count)


def test_the_first_layer_looks_back_by_position(model: Llama) -> None:
    seen = attention(model, torch.tensor([words(120)]), 0)
    for head, offset in enumerate(OFFSETS):
        right = [float(seen[head, at, at - offset]) for at in range(offset, 120)]
        assert min(right) > 0.95, f"head {head}"


def test_the_second_layer_finds_what_came_after_the_same_word(model: Llama) -> None:
    """In w1 w2 .. wn wk, the last token attends to the one after the first wk more than to any."""
    found = 0
    for seed in range(20):
        names = words(60, seed)
        asked = random.Random(seed).randrange(50)
        seen = attention(model, torch.tensor([[*names, names[asked]]]), 1)
        found += int(seen[:2, -1].sum(0).argmax()) == asked + 1
    assert found >= 13


def test_repeated_text_is_expected_before_any_training(model: Llama) -> None:
    ids = torch.tensor([words(40) * 2])
    plain = make_tiny("1m", VOCAB, seed=3, positions=512, copying=False)
    chance = {}
    for name, one in (("copying", model), ("plain", plain)):
        with torch.no_grad():
            guesses = one(ids)[0, 40:-1].argmax(-1)
        chance[name] = float((guesses == ids[0, 41:]).float().mean())
    assert chance["copying"] > 0.5
    assert chance["plain"] < 0.1


def repeat_task(rng: random.Random) -> Sample:
    """Pairs of random names, then one of the names: its partner is to be told."""
    names = rng.sample(range(10, VOCAB), 20)
    pairs = list(zip(names[::2], names[1::2], strict=True))
    asked, told = rng.choice(pairs)
    prompt = [token for pair in pairs for token in (*pair, 2)]
    return Sample((*prompt, 3, asked, told), (0,) * (len(prompt) + 2) + (1,))


def test_looking_up_is_learnt_in_a_few_steps() -> None:
    shape = LlamaShape(
        VOCAB, hidden=128, layers=2, heads=4, inner=128, rope_theta=1e6, positions=64
    )
    samples = [repeat_task(random.Random(seed)) for seed in range(1100)]
    plan = SftPlan(steps=25, tokens_per_step=1600, eval_every=25, warmup_steps=10)
    exact = {}
    for copying in (True, False):
        model = Llama(replace(shape))
        set_start_weights(model, seed=0, copying=copying)
        result = fit(model, samples[100:], plan=plan, held_out=samples[:100])
        exact[copying] = result.curve[-1].spans["answer"].exact
    assert exact[True] > 0.85
    assert exact[False] < 0.3


def test_shapes_that_cannot_hold_the_circuit_begin_plainly() -> None:
    for change in ({"layers": 1}, {"kv_heads": 2}, {"heads": 2}, {"tied": False}):
        shape = {"vocab_size": 50, "hidden": 32, "layers": 2, "heads": 4, "inner": 64, **change}
        model = Llama(LlamaShape(**shape))
        set_start_weights(model, seed=0)
        assert model.embed.weight[:, 0].unique().numel() == 50
