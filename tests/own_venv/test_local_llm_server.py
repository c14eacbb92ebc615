"""A real server with a real model: llama.cpp serving SmolLM2-135M-Instruct on loopback.

Nothing is asserted about the model's wit, only about what goes to and fro.
"""

import asyncio
import json
from dataclasses import replace

import pytest

from dreamgym.errors import LLMRefused
from dreamgym.llm import CachedLLM, HttpLLM, Limits, Spend, ask
from dreamgym.llm.wire import DIALECTS
from dreamgym.types import Message, Request

pytestmark = [pytest.mark.slow, pytest.mark.own_venv]

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"done": {"type": "boolean"}, "reward": {"enum": [0, 1]}},
        "required": ["done", "reward"],
        "additionalProperties": False,
    }
)


def talk(base_url, conversation, **settings):
    """Run a conversation with the server; while the model loads it says 503, and is asked again."""

    async def main():
        limits = Limits(concurrency=4, retries=60, backoff_seconds=0.1, backoff_cap=0.5)
        llm = HttpLLM(base_url, "smollm2", limits=limits, dialect=DIALECTS["llamacpp"], **settings)
        try:
            return await conversation(llm)
        finally:
            await llm.close()

    return asyncio.run(main())


def test_chats_and_texts_are_answered_with_the_tokens_that_were_sampled(base_url):
    async def conversation(llm):
        chat = (Message("system", "You are brief."), Message("user", "Name a colour."))
        return [
            await llm.complete(Request(chat, max_tokens=8)),
            await llm.complete(Request("The cat sat on the", max_tokens=8)),
        ]

    spend = Spend()
    completions = talk(base_url, conversation, spend=spend)
    for completion in completions:
        assert completion.model == "smollm2"
        assert completion.text.strip()
        assert completion.tokens is not None
        assert len(completion.tokens.ids) == completion.usage.completion_tokens <= 8
        assert max(completion.tokens.logprobs) <= 0
        assert completion.usage.prompt_tokens > 0
    assert completions[1].truncated
    figures = spend.metrics()
    assert figures["llm/billed_calls"] == 2
    assert figures["llm/unsure_calls"] == 0


def test_greedy_answers_and_seeds_repeat_and_stops_stop(base_url):
    async def conversation(llm):
        greedy = Request("Monday, Tuesday,", max_tokens=12)
        sampled = [Request("Once upon", max_tokens=12, temperature=1.0, seed=n) for n in (1, 2, 1)]
        texts = [(await llm.complete(request)).text for request in (greedy, greedy, *sampled)]
        middle = texts[0].strip()[2]
        return *texts, middle, (await llm.complete(replace(greedy, stop=(middle,)))).text

    first, again, one, two, one_again, middle, stopped = talk(base_url, conversation)
    assert first == again
    assert one == one_again != two
    assert stopped == first[: first.index(middle)]


def test_a_schema_is_kept_to_in_chats_and_in_texts(base_url):
    def parse(text):
        value = json.loads(text)
        assert set(value) == {"done", "reward"}
        assert isinstance(value["done"], bool)
        assert value["reward"] in (0, 1)
        return value

    async def conversation(llm):
        question = "The door is open. Is the task 'open the door' done? Answer in JSON."
        chat = Request((Message("user", question),), max_tokens=60, json_schema=SCHEMA)
        text = Request(f"{question}\n", max_tokens=60, json_schema=SCHEMA)
        return [await ask(llm, request, parse) for request in (chat, text)]

    for reply in talk(base_url, conversation):
        assert reply.completions


def test_a_prompt_that_is_too_long_is_refused_in_the_servers_words(base_url):
    async def conversation(llm):
        await llm.complete(Request("cat " * 3000, max_tokens=4))

    with pytest.raises(LLMRefused, match="context size"):
        talk(base_url, conversation)


def test_many_requests_at_once_and_the_same_offline(base_url, tmp_path):
    requests = [
        Request(f"{n} plus {n} is", max_tokens=6, temperature=0.8, seed=n) for n in range(12)
    ]

    def run(url, *, offline):
        async def conversation(llm):
            cached = CachedLLM(llm, tmp_path / "cache", identity="smollm2", offline=offline)
            try:
                return await asyncio.gather(*(cached.complete(request) for request in requests))
            finally:
                await cached.close()

        return talk(url, conversation)

    first = run(base_url, offline=False)
    assert all(completion.usage.completion_tokens for completion in first)
    assert run("http://127.0.0.1:9/v1", offline=True) == first
