import asyncio
import json
import pickle

import pytest

from dreamgym.errors import LLMRefused, ReplyFormatError
from dreamgym.llm import ScriptedLLM, ask
from dreamgym.types import Completion, Message, Request

CHAT = Request((Message("user", "Is it done? Answer in JSON."),))


def run(llm, request=CHAT, parse=json.loads, **settings):
    return asyncio.run(ask(llm, request, parse, **settings))


def test_a_readable_answer_needs_one_call():
    llm = ScriptedLLM(['{"done": true}'])
    reply = run(llm)
    assert reply.value == {"done": True}
    assert len(reply.completions) == 1


def test_the_model_is_shown_its_mistake_in_a_chat():
    llm = ScriptedLLM(["well, yes", '{"done": true}'])
    reply = run(llm)
    assert reply.value == {"done": True}
    assert [completion.text for completion in reply.completions] == ["well, yes", '{"done": true}']
    first, said, complaint = llm.requests[1].prompt
    assert (first,) == CHAT.prompt
    assert said == Message("assistant", "well, yes")
    assert complaint.role == "user"
    assert "Expecting value" in complaint.content


def test_the_model_is_shown_its_mistake_in_a_text():
    llm = ScriptedLLM(["nope", "[1]"])
    assert run(llm, Request("List: ")).value == [1]
    assert llm.requests[1].prompt.startswith("List: nope\n\nThat answer could not be read")


def test_mistakes_do_not_pile_up():
    llm = ScriptedLLM(["first bad", "second bad", "[1]"])
    run(llm)
    assert len(llm.requests[2].prompt) == 3
    assert "first bad" not in str(llm.requests[2].prompt)


def test_after_its_budget_the_error_carries_the_answer():
    llm = ScriptedLLM(["bad"] * 9)
    with pytest.raises(ReplyFormatError, match="3 answers of scripted could not be read") as caught:
        run(llm, retries=2)
    assert caught.value.raw == pickle.loads(pickle.dumps(caught.value)).raw == "bad"
    assert len(llm.requests) == 3


def test_no_budget_means_one_call():
    llm = ScriptedLLM(["bad"])
    with pytest.raises(ReplyFormatError, match="1 answer of"):
        run(llm, retries=0)
    with pytest.raises(ValueError, match="retries"):
        run(llm, retries=-1)


def test_a_long_answer_is_bounded_for_the_model_and_in_the_error():
    llm = ScriptedLLM(["x" * 100_000] * 2)
    with pytest.raises(ReplyFormatError) as caught:
        run(llm, retries=1)
    assert len(caught.value.raw) == 20_000
    assert len(str(llm.requests[1].prompt)) < 5_000


def test_a_cut_off_or_empty_answer_is_called_so():
    cut = Completion(text='{"done": tr', model="m", truncated=True)
    llm = ScriptedLLM([cut, "", "[1]"])
    run(llm)
    assert "cut off for its length" in llm.requests[1].prompt[-1].content
    assert "it is empty" in llm.requests[2].prompt[-1].content


def test_a_parsers_own_bug_is_not_the_models_fault():
    with pytest.raises(KeyError):
        run(ScriptedLLM(["{}"]), parse=lambda text: json.loads(text)["done"])


def test_errors_of_the_back_end_pass_and_use_up_no_retries():
    llm = ScriptedLLM([LLMRefused("no"), "[1]"])
    with pytest.raises(LLMRefused):
        run(llm)
    assert len(llm.requests) == 1


def test_the_correction_can_be_ones_own():
    llm = ScriptedLLM(["bad", "[1]"])
    run(llm, amend=lambda request, completion, wrong: Request(f"again after {completion.text}"))
    assert llm.requests[1].prompt == "again after bad"
