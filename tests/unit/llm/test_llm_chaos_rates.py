"""Many requests, many faults: whatever is delivered is right, and nothing is invented."""

import asyncio
import json
from collections import Counter

import pytest

from dreamgym.errors import LLMError, ReplyFormatError
from dreamgym.llm import ChaosServer, Fault, HttpLLM, Limits, ask
from dreamgym.llm.chaos import CONTENT_FAULTS, TRANSPORT_FAULTS
from dreamgym.types import Request, digest

KINDS = [fault for fault in TRANSPORT_FAULTS if fault is not Fault.RATE_LIMIT_DATE]
"""All but the one that stops everyone for a whole second each time; it has a test of its own."""
LIMITS = Limits(
    concurrency=32, retries=6, backoff_seconds=0.01, backoff_cap=0.05, attempt_seconds=0.7
)


def truth(prompt):
    return json.dumps({"answer": digest(prompt)})


def parse(text):
    record = json.loads(text)
    if set(record) != {"answer"}:
        raise ValueError(f"fields {sorted(record)}, expected one: answer")
    return record["answer"]


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_every_answer_that_is_delivered_is_right(rate):
    prompts = [f"question {n}" for n in range(200)]

    async def main():
        llm = HttpLLM(server.base_url, "m", limits=LIMITS)
        try:
            calls = (llm.complete(Request(prompt)) for prompt in prompts)
            return await asyncio.gather(*calls, return_exceptions=True), llm.metrics()
        finally:
            await llm.close()

    with ChaosServer(truth, rate=rate, kinds=KINDS, seed=1) as server:
        ends, metrics = asyncio.run(main())
    sent = Counter(payload["prompt"] for payload in server.payloads)
    lost = 0
    for prompt, end in zip(prompts, ends, strict=True):
        if isinstance(end, BaseException):
            assert isinstance(end, LLMError)
            assert sent[prompt] <= LIMITS.retries + 1
            lost += 1
        else:
            assert end.text == truth(prompt)
            assert 1 <= sent[prompt] <= LIMITS.retries + 1
    assert lost <= 200 * rate**4 + 1
    assert metrics["llm/failed_calls"] == lost
    # Some attempts fail before the server has read the request.
    assert metrics["llm/attempts"] >= server.counts["requests"]
    faults = server.counts["requests"] - server.counts["right"]
    assert faults >= 200 * rate / 2


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_answers_that_do_not_parse_have_a_budget_of_their_own(rate):
    prompts = [f"question {n}" for n in range(200)]
    kinds = [*CONTENT_FAULTS, Fault.SERVER_ERROR, Fault.TRUNCATED]

    async def main():
        llm = HttpLLM(server.base_url, "m", limits=LIMITS)
        try:
            calls = (ask(llm, Request(prompt), parse, retries=3) for prompt in prompts)
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await llm.close()

    def answer(prompt):
        # Later prompts carry the complaint; the truth is about the question that they start with.
        number = prompt.removeprefix("question ").split("zxq")[0].split()[0]
        return truth(f"question {number}")

    with ChaosServer(answer, rate=rate, kinds=kinds, seed=2) as server:
        ends = asyncio.run(main())
    unread = 0
    for prompt, end in zip(prompts, ends, strict=True):
        if isinstance(end, BaseException):
            assert isinstance(end, ReplyFormatError)
            unread += 1
        else:
            assert end.value == digest(prompt)
            assert 1 <= len(end.completions) <= 4
    assert unread <= 10
