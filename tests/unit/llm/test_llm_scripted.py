import asyncio

import pytest

from dreamgym.errors import LLMError, LLMTimeout
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.scripted import prompt_digest
from dreamgym.types import Completion, Message, Request, Usage


def say(llm, request):
    return asyncio.run(llm.complete(request if isinstance(request, Request) else Request(request)))


def test_a_list_is_said_in_order_and_runs_out():
    llm = ScriptedLLM(["a", "b"])
    assert [say(llm, "1").text, say(llm, "2").text] == ["a", "b"]
    with pytest.raises(LLMError, match="script ran out: it has 2 lines, this is call 3"):
        say(llm, "3")
    assert [request.prompt for request in llm.requests] == ["1", "2", "3"]


def test_a_mapping_is_searched_by_digest_then_by_words():
    chat = Request((Message("user", "open the door"),))
    llm = ScriptedLLM({prompt_digest(chat): "by digest", "open .* door": "by words", "": "else"})
    assert say(llm, chat).text == "by digest"
    assert say(llm, "open the red door").text == "by words"
    assert say(llm, "go north").text == "else"
    with pytest.raises(LLMError, match="no line for prompt"):
        say(ScriptedLLM({"x": "y"}), "z")


def test_a_function_sees_the_request():
    llm = ScriptedLLM(lambda request: f"{request.prompt}{request.seed}")
    assert say(llm, Request("p", seed=4)).text == "p4"


def test_errors_and_whole_completions_may_be_in_a_script():
    whole = Completion("x", model="other", truncated=True)
    llm = ScriptedLLM([LLMTimeout("late"), whole])
    with pytest.raises(LLMTimeout):
        say(llm, "1")
    assert say(llm, "2") is whole


def test_tokens_are_words_and_stops_are_kept():
    completion = say(ScriptedLLM(["one two\nthree"]), Request("a b c", stop=("\n",)))
    assert completion.text == "one two"
    assert completion.usage == Usage(3, 2)


def test_closing_is_seen():
    llm = ScriptedLLM([])
    asyncio.run(llm.close())
    assert llm.closed
