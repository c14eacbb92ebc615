"""The quick reader says what its model says, and the same in any company."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dreamgym.models.cache import KVCache
from dreamgym.models.llama import Llama
from dreamgym.models.quick import QuickLlama

IDS = torch.arange(3 * 40).view(3, 40) * 7 % 97


@pytest.fixture(params=["llama", "grouped_llama"])
def model(request: pytest.FixtureRequest) -> Llama:
    found: Llama = request.getfixturevalue(request.param)
    return found


def quick_of(model: Llama) -> QuickLlama:
    quick = QuickLlama(model)
    quick.take_weights()
    return quick


@torch.inference_mode()
def test_scores_are_those_of_the_model(model: Llama) -> None:
    quick = quick_of(model)
    cache = KVCache.empty(model.cache_shape, 3, columns=64)
    counts = [40, 7, 33]
    scores = quick.logits(quick.hidden(IDS, cache=cache, span=cache.span(40, counts)))
    asked = torch.tensor([[39, 38], [6, 6], [32, 0]])
    other = KVCache.empty(model.cache_shape, 3, columns=64)
    few = quick.hidden(IDS, cache=other, span=replace(other.span(40, counts), asked=asked))
    for row, count in enumerate(counts):
        right = model(IDS[row : row + 1, :count])[0]
        torch.testing.assert_close(scores[row, :count], right, atol=1e-4, rtol=1e-4)
        some = quick.logits(few)[row]
        torch.testing.assert_close(some, right[asked[row]], atol=1e-4, rtol=1e-4)
    assert torch.equal(cache.store, other.store)
    assert not cache.store[:, :, 1, 7:].any(), "filler leaves nothing behind"


@torch.inference_mode()
def test_a_token_alone_has_the_bits_it_has_among_others(model: Llama) -> None:
    """Read in one pass, token by token, and all but one first: 33 queries are a block and one."""
    quick = quick_of(model)
    ways = [[33], [1] * 33, [32, 1], [1, 32], [17, 16]]
    found = []
    for steps in ways:
        cache = KVCache.empty(model.cache_shape, 1, columns=64)
        seen = []
        for step in steps:
            start = int(cache.lengths[0])
            hidden = quick.hidden(
                IDS[:1, start : start + step], cache=cache, span=cache.span(step, [step])
            )
            seen.append(quick.logits(hidden)[0])
            cache.lengths += step
        found.append(torch.cat(seen))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=1e-5, rtol=1e-5)
    if model.shape.kv_heads == model.shape.heads:
        assert all(torch.equal(other, found[0]) for other in found[1:])


@torch.inference_mode()
def test_weights_are_those_that_were_taken(llama: Llama) -> None:
    quick = quick_of(llama)
    cache = KVCache.empty(llama.cache_shape, 1, columns=32)
    span = cache.span(5, [5])
    before = quick.logits(quick.hidden(IDS[:1, :5], cache=cache, span=span))
    block = llama.block(0)
    kept = block.down.weight.detach().clone()
    block.down.weight.data.mul_(2.0)
    still = quick.logits(quick.hidden(IDS[:1, :5], cache=cache, span=span))
    quick.take_weights()
    after = quick.logits(quick.hidden(IDS[:1, :5], cache=cache, span=span))
    block.down.weight.data.copy_(kept)
    assert torch.equal(still, before)
    assert not torch.allclose(after, before)
