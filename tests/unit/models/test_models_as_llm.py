"""A local model as an `LLM`: words in, words and sampled tokens out, in full batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from random_models import random_llama

from dreamgym.errors import LLMError, LLMRefused
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.decode import Answer, Decoder, Query
from dreamgym.models.llama import Llama
from dreamgym.models.tokenizer import WordTokenizer
from dreamgym.types import Completion, Message, Request

REQUEST = Request("<act>take the coin<obs>", max_tokens=20)


@pytest.fixture(scope="module")
def model(words: WordTokenizer) -> Llama:
    return random_llama(vocab_size=words.vocab_size)


class CountingDecoder(Decoder):
    """Notes how many queries came at once."""

    sizes: list[int]

    def generate(self, queries: Sequence[Query]) -> list[Answer]:
        self.sizes = [*getattr(self, "sizes", []), len(queries)]
        return super().generate(queries)


def answers(llm: LocalLLM, requests: Sequence[Request]) -> list[Any]:
    async def ask() -> list[Any]:
        tasks = (llm.complete(request) for request in requests)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await llm.close()
        return found

    return asyncio.run(ask())


def many(count: int, **settings: object) -> list[Request]:
    texts = ["<act>take", "the coin", "a box (red)", "go north<obs>", "You see: the"]
    return [replace(REQUEST, prompt=texts[n % 5] * (n + 1), **settings) for n in range(count)]


def test_concurrent_requests_are_one_batch(model: Llama, words: WordTokenizer) -> None:
    decoder = CountingDecoder(model)
    found = answers(LocalLLM(model, words, decoder=decoder), many(20))
    assert decoder.sizes == [20]
    assert all(isinstance(completion, Completion) for completion in found)


def test_answers_do_not_depend_on_the_batch(model: Llama, words: WordTokenizer) -> None:
    requests = [replace(request, temperature=n % 2, seed=n) for n, request in enumerate(many(10))]
    together = answers(LocalLLM(model, words), requests)
    apart = [answers(LocalLLM(model, words), [request])[0] for request in requests]
    for one, other in zip(together, apart, strict=True):
        assert one.text == other.text
        assert one.tokens.ids == other.tokens.ids
        assert one.tokens.logprobs == pytest.approx(other.tokens.logprobs, abs=1e-4)


def test_text_tokens_and_usage_belong_together(model: Llama, words: WordTokenizer) -> None:
    found = answers(LocalLLM(model, words, name="tiny"), many(8))
    for request, completion in zip(many(8), found, strict=True):
        assert completion.model == "tiny"
        ids = completion.tokens.ids
        assert completion.usage.prompt_tokens == len(words.encode(request.prompt))
        assert completion.usage.completion_tokens == len(ids) == len(completion.tokens.logprobs)
        ended = ids[-1] == words.end_id
        assert completion.truncated is not ended
        assert completion.text == words.decode(ids[:-1] if ended else ids)


def test_an_answer_may_end_by_itself(model: Llama, words: WordTokenizer) -> None:
    """A model that wants nothing but the end token says nothing, and that is not cut off."""
    sure = random_llama(vocab_size=words.vocab_size, tied=False)
    with torch.no_grad():
        sure.head.weight.zero_()
        sure.head.weight[words.end_id] = sure.hidden(torch.tensor([words.encode("the coin")]))[
            0, -1
        ]
    (completion,) = answers(LocalLLM(sure, words), [Request("the coin")])
    assert completion.text == ""
    assert completion.tokens.ids == (words.end_id,)
    assert not completion.truncated


def test_stop_texts_end_the_answer_and_are_not_part_of_it(
    model: Llama, words: WordTokenizer
) -> None:
    request = replace(REQUEST, max_tokens=60, temperature=1.0, seed=3)
    (free,) = answers(LocalLLM(model, words), [request])
    for start in (5, 9, 12):
        for stop in (free.text[start : start + 3], free.text[start]):
            stopped = replace(request, stop=("never said", stop))
            (cut,) = answers(LocalLLM(model, words), [stopped])
            assert cut.text == free.text.partition(stop)[0]
            assert cut.tokens.ids == free.tokens.ids[: len(cut.tokens.ids)]
            assert not cut.truncated
            assert stop in words.decode(cut.tokens.ids)


def test_seeds_repeat_and_their_absence_does_not(model: Llama, words: WordTokenizer) -> None:
    warm = replace(REQUEST, temperature=1.0)
    seeded = [replace(warm, seed=seed) for seed in (1, 2, 1)]
    first, other, again = answers(LocalLLM(model, words), seeded)
    assert first == again != other
    free = answers(LocalLLM(model, words), [warm, warm])
    assert free[0].text != free[1].text
    assert answers(LocalLLM(model, words), [warm, warm]) == free, "by the model's own seed"
    assert answers(LocalLLM(model, words, seed=1), [warm, warm]) != free


def test_chats_are_rendered(model: Llama, words: WordTokenizer) -> None:
    chat = (Message("user", "take the coin"),)
    plain = Request("user: take the coin\n\nassistant:", max_tokens=5)
    found = answers(LocalLLM(model, words), [replace(plain, prompt=chat), plain])
    assert found[0] == found[1]


def test_what_does_not_fit_is_refused_alone(model: Llama, words: WordTokenizer) -> None:
    requests = [
        replace(REQUEST, prompt="the" + " the" * 255),
        replace(REQUEST, prompt=""),
        replace(REQUEST, max_tokens=0),
        replace(REQUEST, prompt="the " * 250, max_tokens=512),
        REQUEST,
    ]
    found = answers(LocalLLM(model, words), requests)
    assert [type(one) for one in found[:3]] == [LLMRefused] * 3
    assert "256 tokens" in str(found[0])
    assert found[3].usage.completion_tokens <= 6
    assert isinstance(found[4], Completion)


def test_a_closed_model_refuses(model: Llama, words: WordTokenizer) -> None:
    llm = LocalLLM(model, words)
    answers(llm, [REQUEST])
    (refused,) = answers(llm, [REQUEST])
    assert isinstance(refused, LLMError)


def test_candidates_are_scored(model: Llama, words: WordTokenizer) -> None:
    candidates = ["take the coin", "go north", ""]

    async def ask() -> list[Any]:
        llm = LocalLLM(model, words)
        found = await asyncio.gather(
            llm.score("<obs>You see<act>", candidates),
            llm.score("<obs>You see<act>", candidates, end=False),
            llm.score("the " * 250, ["the " * 10]),
            return_exceptions=True,
        )
        await llm.close()
        return found

    ended, open_ended, refused = asyncio.run(ask())
    assert [len(scores) for scores in ended] == [4, 3, 1]
    assert [len(scores) for scores in open_ended] == [3, 2, 0]
    prompt = words.encode("<obs>You see<act>")
    ids = [*words.encode("go north"), words.end_id]
    with torch.no_grad():
        logprobs = torch.log_softmax(model(torch.tensor([prompt + ids]))[0], dim=-1)
    right = [float(logprobs[len(prompt) - 1 + n, token]) for n, token in enumerate(ids)]
    assert ended[1] == pytest.approx(right, abs=1e-4)
    assert isinstance(refused, LLMRefused)
