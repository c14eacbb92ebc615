"""Our Llama gives the numbers of transformers' Llama, cached or not, and learns by them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dreamgym.errors import ConfigError
from dreamgym.models.cache import KVCache, Span, additive
from dreamgym.models.llama import Llama, RMSNorm
from dreamgym.models.llama_files import (
    LlamaShape,
    from_hugging_face,
    read_config,
    read_shape,
    read_weights,
    to_hugging_face,
)
from dreamgym.models.load import load_llama, load_model

IDS = torch.randint(0, 97, (3, 40), generator=torch.Generator().manual_seed(3))


@pytest.fixture(params=["llama", "grouped_llama"])
def model(request: pytest.FixtureRequest) -> Llama:
    return request.getfixturevalue(request.param)


@torch.no_grad()
def test_transformers_loads_it_and_gives_the_same_scores(model: Llama, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model.save(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path))
    assert type(theirs).__name__ == "LlamaForCausalLM"
    torch.testing.assert_close(theirs(IDS).logits, model(IDS), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_gradients_are_those_of_transformers(llama: Llama, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    llama.save(tmp_path)
    theirs, ours = AutoModelForCausalLM.from_pretrained(str(tmp_path)), load_llama(tmp_path)
    for model, logits in ((theirs, lambda: theirs(IDS).logits), (ours, lambda: ours(IDS))):
        with torch.enable_grad():
            scores = logits()[:, :-1].flatten(0, 1)
            torch.nn.functional.cross_entropy(scores, IDS[:, 1:].flatten()).backward()
        assert all(weight.grad is not None for weight in model.parameters())
    gradients = {name: weight.grad for name, weight in ours.named_parameters()}
    named = to_hugging_face(gradients, ours.shape)
    for name, weight in theirs.named_parameters():
        torch.testing.assert_close(named[name], weight.grad, atol=1e-5, rtol=1e-4)


def test_the_norm_has_the_right_gradient() -> None:
    norm = RMSNorm(8, 1e-5).double()
    x = torch.randn(3, 2, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (x,))
    weight = norm.weight

    def by_weight(values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(norm, {"weight": values}, (x.detach(),))

    assert torch.autograd.gradcheck(by_weight, (weight.detach().requires_grad_(),))


@torch.no_grad()
def test_rows_of_different_lengths_go_on_from_a_cache(model: Llama) -> None:
    whole = model(IDS)
    cache = KVCache.empty(model.cache_shape, 3, columns=40)
    model.hidden(IDS[:, :30], cache=cache)
    cache.lengths += torch.tensor([30, 20, 7])  # the rest was filler
    for ahead in range(3):
        following = torch.stack([IDS[0, 30 + ahead], IDS[1, 20 + ahead], IDS[2, 7 + ahead]])
        scores = model(following[:, None], cache=cache)
        cache.lengths += 1
        for row, place in enumerate((30, 20, 7)):
            torch.testing.assert_close(scores[row, 0], whole[row, place + ahead], atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_span_says_where_tokens_stand_and_what_they_see(llama: Llama) -> None:
    """Two sequences in one row, each blind to the other."""
    ids = torch.cat((IDS[0, :10], IDS[1, :10]))[None]
    positions = torch.cat((torch.arange(10), torch.arange(10)))[None]
    blocks = torch.arange(20) // 10
    hidden = (blocks[:, None] != blocks) | (torch.arange(20) > torch.arange(20)[:, None])
    both = llama.hidden(ids, span=Span(positions, additive(hidden[None])))
    apart = llama.hidden(IDS[:2, :10])
    torch.testing.assert_close(both.view(2, 10, -1), apart, atol=1e-5, rtol=1e-5)


def test_some_tokens_of_each_row_may_be_asked_for(model: Llama) -> None:
    ids = torch.arange(36).view(3, 12) * 5 % 97
    asked = torch.tensor([[11, 3], [4, 4], [0, 1]])
    with torch.inference_mode():
        whole, some = (KVCache.empty(model.cache_shape, 3, columns=12) for _ in range(2))
        every = model.hidden(ids, cache=whole)
        few = model.hidden(ids, cache=some, span=replace(some.span(12), asked=asked))
    assert few.shape == (3, 2, model.hidden_size)
    right = every[torch.arange(3)[:, None], asked]
    torch.testing.assert_close(few, right, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(some.store, whole.store, atol=1e-5, rtol=1e-5)


def test_weights_convert_both_ways(model: Llama) -> None:
    weights = model.state_dict()
    back = from_hugging_face(to_hugging_face(weights, model.shape), model.shape)
    assert back.keys() == weights.keys()
    assert all(torch.equal(back[name], weights[name]) for name in weights)


def test_saved_and_loaded_with_its_settings(model: Llama, tmp_path: Path) -> None:
    Llama(model.shape, settings={"eos_token_id": 7, "vocab_size": 1}).save(tmp_path / "other")
    assert read_config(tmp_path / "other")["eos_token_id"] == 7
    assert read_config(tmp_path / "other")["vocab_size"] == model.vocab_size
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert isinstance(again, Llama)
    assert again.shape == model.shape
    assert torch.equal(again(IDS), model(IDS))


def test_sequences_that_are_too_long_are_refused(llama: Llama) -> None:
    with pytest.raises(ConfigError, match="a sequence of 257 tokens is too long: .* made for 256"):
        llama(torch.zeros(1, 257, dtype=torch.long))


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 heads cannot share 2"):
        LlamaShape(10, 12, 1, 3, 24, kv_heads=2)
    with pytest.raises(ConfigError, match="head_dim 3 is odd"):
        LlamaShape(10, 12, 1, 4, 24)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "qwen3"},
        {"attention_bias": True},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}},
        {"hidden_act": "gelu"},
    ],
)
def test_what_the_module_does_not_cover_is_noticed(
    llama: Llama, tmp_path: Path, change: dict[str, object]
) -> None:
    llama.save(tmp_path)
    config = read_config(tmp_path)
    assert read_shape(config) == llama.shape
    assert read_shape({**config, **change}) is None
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConfigError, match="holds no plain Llama"):
        load_llama(tmp_path)


def test_folders_without_a_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no config.json"):
        read_config(tmp_path)
    with pytest.raises(ConfigError, match="no \\*.safetensors file"):
        read_weights(tmp_path)
    for content, complaint in (("{", "is not JSON"), ("[]", "is not a JSON object")):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(ConfigError, match=complaint):
            read_config(tmp_path)
