"""What every language-model back end promises, whatever it is made of."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dreamgym.errors import LLMError
from dreamgym.llm import BreakerLLM, CachedLLM, ChaosServer, HttpLLM, Limits, ScriptedLLM
from dreamgym.types import Completion, Message, Request, Usage


def reverse(prompt):
    if "refuse" in prompt:
        raise LLMError("told to fail")
    return prompt[::-1]


def scripted():
    return ScriptedLLM(lambda request: reverse(_flat(request)))


def _flat(request):
    from dreamgym.llm.prompt import flat_prompt

    return flat_prompt(request.prompt)


@asynccontextmanager
async def opened(kind, tmp_path):
    with ChaosServer(reverse) as server:
        http = HttpLLM(server.base_url, "m", limits=Limits(retries=0))
        llm = {
            "scripted": scripted,
            "http": lambda: http,
            "cached": lambda: CachedLLM(scripted(), tmp_path / "c", identity="x"),
            "breaker": lambda: BreakerLLM(scripted()),
            "stack": lambda: CachedLLM(BreakerLLM(http), tmp_path / "c", identity="x"),
        }[kind]()
        try:
            yield llm
        finally:
            await llm.close()


@pytest.fixture(params=["scripted", "http", "cached", "breaker", "stack"])
def run(request, tmp_path):
    def with_llm(conversation):
        async def main():
            async with opened(request.param, tmp_path) as llm:
                return await asyncio.wait_for(conversation(llm), 30)

        return asyncio.run(main())

    return with_llm


def test_a_text_is_answered(run):
    completion = run(lambda llm: llm.complete(Request("abc")))
    assert isinstance(completion, Completion)
    assert completion.text == "cba"
    assert completion.model
    assert completion.usage == Usage(1, 1)
    assert not completion.truncated


def test_a_chat_is_answered(run):
    chat = (Message("system", "a"), Message("user", "b"))
    assert run(lambda llm: llm.complete(Request(chat))).text == "b :resu\n\na :metsys"


def test_many_at_once_are_not_mixed_up(run):
    async def conversation(llm):
        return await asyncio.gather(*(llm.complete(Request(f"question {n}")) for n in range(50)))

    answers = run(conversation)
    assert [answer.text for answer in answers] == [f"question {n}"[::-1] for n in range(50)]


def test_failing_is_an_error_and_never_an_answer(run):
    async def conversation(llm):
        with pytest.raises(LLMError):
            await llm.complete(Request("refuse this"))
        return await llm.complete(Request("abc"))

    assert run(conversation).text == "cba"


def test_closing_twice_does_no_harm(run):
    async def conversation(llm):
        await llm.complete(Request("abc"))
        await llm.close()

    run(conversation)


def test_it_leaves_no_tasks_behind(run):
    async def conversation(llm):
        call = asyncio.create_task(llm.complete(Request("abc")))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await llm.close()
        return asyncio.all_tasks() - {asyncio.current_task()}

    left = run(conversation)
    # The one that waits for this conversation is not ours.
    assert len(left) <= 1
