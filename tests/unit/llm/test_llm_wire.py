"""Bodies as real servers send them: hosted OpenAI, vLLM, llama.cpp."""

import json

import pytest

from dreamgym.errors import ConfigError, LLMRefused
from dreamgym.llm.wire import (
    DIALECTS,
    Dialect,
    UnusableReply,
    decode_reply,
    encode_request,
    server_words,
)
from dreamgym.types import Message, Request, SampledTokens, Usage

CHAT = (Message("system", "You are a world."), Message("user", "go north"))
SCHEMA = '{"type": "object", "properties": {"done": {"type": "boolean"}}}'


def body_of(request, dialect="plain"):
    path, body = encode_request(request, model="m", dialect=DIALECTS[dialect])
    return path, json.loads(body)


def reply(**choice):
    return json.dumps({"choices": [choice]}).encode()


def test_a_chat_goes_to_the_chat_endpoint():
    path, body = body_of(Request(CHAT, max_tokens=9, temperature=0.5, stop=("\n",), seed=3))
    assert path == "chat/completions"
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You are a world."},
            {"role": "user", "content": "go north"},
        ],
        "max_tokens": 9,
        "temperature": 0.5,
        "stop": ["\n"],
        "seed": 3,
    }


def test_a_text_goes_to_the_completions_endpoint():
    path, body = body_of(Request("Once", max_tokens=9))
    assert path == "completions"
    assert body == {"model": "m", "prompt": "Once", "max_tokens": 9, "temperature": 0.0}


def test_a_grammar_goes_where_one_is_understood():
    request = Request(CHAT, grammar='root ::= "yes"')
    assert body_of(request, "llamacpp")[1]["grammar"] == 'root ::= "yes"'
    for dialect in ("plain", "openai", "vllm"):
        assert "grammar" not in body_of(request, dialect)[1]


def test_a_chat_goes_as_one_text_to_a_server_without_chats():
    dialect = Dialect(chat=False)
    path, body = encode_request(Request(CHAT, stop=("\n\n\n",)), model="m", dialect=dialect)
    assert path == "completions"
    told = json.loads(body)
    assert told["prompt"] == "system: You are a world.\n\nuser: go north\n\nassistant:"
    assert told["stop"] == ["\n\n\n", "\n\nuser:"]
    plain = json.loads(encode_request(Request("Once"), model="m", dialect=dialect)[1])
    assert plain["prompt"] == "Once"
    assert "stop" not in plain


def test_hosted_chats_name_the_length_limit_differently():
    assert "max_completion_tokens" in body_of(Request(CHAT), "openai")[1]
    assert "max_tokens" in body_of(Request("text"), "openai")[1]


def test_each_dialect_sends_the_schema_its_own_way():
    request = Request(CHAT, json_schema=SCHEMA)
    assert "json_schema" not in json.dumps(body_of(request, "plain")[1])
    sent = body_of(request, "openai")[1]["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == json.loads(SCHEMA)
    assert body_of(request, "llamacpp")[1]["json_schema"] == json.loads(SCHEMA)


def test_a_schema_that_is_not_json_is_refused_before_anything_is_sent():
    with pytest.raises(LLMRefused, match="json_schema"):
        body_of(Request("x", json_schema="{oops"), "openai")


def test_logprobs_are_asked_for_in_the_way_of_each_endpoint():
    assert body_of(Request(CHAT), "llamacpp")[1]["logprobs"] is True
    assert body_of(Request("x"), "llamacpp")[1]["logprobs"] == 1
    assert body_of(Request("x"), "vllm")[1]["return_token_ids"] is True


def test_half_a_surrogate_pair_in_a_prompt_can_be_sent():
    assert body_of(Request("bad \ud83d end"))[1]["prompt"] == "bad \ud83d end"


def test_an_unknown_way_to_send_a_schema_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="Did you mean 'llamacpp'"):
        Dialect(schema="lamacpp")


def test_a_chat_reply():
    body = json.dumps(
        {
            "model": "gpt-x-2026",
            "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13},
        }
    ).encode()
    completion = decode_reply(body, model="gpt-x")
    assert (completion.text, completion.model) == ("Hi", "gpt-x-2026")
    assert completion.usage == Usage(12, 1)
    assert not completion.truncated
    assert completion.tokens is None


def test_a_completions_reply_that_was_cut_off():
    completion = decode_reply(reply(text=" on a", finish_reason="length"), model="m")
    assert completion.text == " on a"
    assert completion.truncated
    assert completion.usage == Usage()


def test_tokens_of_llama_cpp():
    entries = [
        {"id": 335, "token": " on", "logprob": -1.5, "top_logprobs": []},
        {"id": 253, "token": " a", "logprob": -0.25, "top_logprobs": []},
    ]
    for said in ({"text": " on a"}, {"message": {"content": " on a"}}):
        completion = decode_reply(reply(logprobs={"content": entries}, **said), model="m")
        assert completion.tokens == SampledTokens((335, 253), (-1.5, -0.25))


def test_tokens_of_vllm():
    old = {"tokens": [" on", " a"], "token_logprobs": [-1.5, -0.25]}
    completion = decode_reply(reply(text=" on a", token_ids=[9, 8], logprobs=old), model="m")
    assert completion.tokens == SampledTokens((9, 8), (-1.5, -0.25))
    new = {"content": [{"token": "a", "logprob": -1}, {"token": "b", "logprob": -2}]}
    body = reply(message={"content": "ab"}, token_ids=[9, 8], logprobs=new)
    assert decode_reply(body, model="m").tokens == SampledTokens((9, 8), (-1.0, -2.0))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": None},
        {"content": [{"token": "a", "logprob": -1.0}]},
        {"content": [{"id": 1, "logprob": None}]},
        {"content": [{"id": -1, "logprob": -1.0}]},
        {"content": [{"id": True, "logprob": -1.0}]},
        {"content": [{"id": 1, "logprob": float("-inf")}]},
        {"content": ["a"]},
        {"token_logprobs": [-1.0]},
    ],
)
def test_half_of_the_token_facts_is_none_at_all(logprobs):
    assert decode_reply(reply(text="a", logprobs=logprobs), model="m").tokens is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b'{"choices": [{"text": "hal',
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": "text"}',
        b'{"choices": ["text"]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"text": null}]}',
        b'{"choices": [{"text": 5}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": [{"type": "text"}]}}]}',
        b'{"error": {"message": "oops"}}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_a_completion_is_never_one(body):
    with pytest.raises(UnusableReply):
        decode_reply(body, model="m")


def test_an_unusable_reply_still_says_what_it_took():
    body = b'{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}'
    with pytest.raises(UnusableReply) as caught:
        decode_reply(body, model="m")
    assert caught.value.usage == Usage(3, 0)


def test_an_empty_answer_is_an_answer():
    assert decode_reply(reply(message={"content": ""}), model="m").text == ""


def test_reasoning_that_ate_all_tokens_is_an_empty_cut_off_answer():
    completion = decode_reply(reply(message={"content": None}, finish_reason="length"), model="m")
    assert completion.text == ""
    assert completion.truncated


def test_a_filtered_answer_is_refused_not_delivered():
    with pytest.raises(LLMRefused, match="content filter"):
        decode_reply(reply(text="half", finish_reason="content_filter"), model="m")


def test_half_a_surrogate_pair_in_an_answer_is_replaced():
    text = decode_reply(b'{"choices": [{"text": "a\\ud83d"}]}', model="m").text
    assert text == "a?"
    assert text.encode()


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {},
        {"prompt_tokens": 3},
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": "3", "completion_tokens": 2},
    ],
)
def test_strange_token_counts_are_unknown_not_wrong(usage):
    body = json.dumps({"choices": [{"text": "a"}], "usage": usage}).encode()
    assert decode_reply(body, model="m").usage == Usage()


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        (b'{"error": {"message": "too long", "code": "ctx"}}', "too long", "ctx"),
        (b'{"error": "plain words"}', "plain words", ""),
        (b'{"detail": "not found"}', "not found", ""),
        (b'{"message": "m", "type": "t"}', "m", "t"),
        (b"<html>\n Bad   gateway</html>", "<html> Bad gateway</html>", ""),
        (b"", "", ""),
        (b"[1]", "[1]", ""),
    ],
)
def test_the_words_of_a_server(body, words, code):
    assert server_words(body) == (words, code)


def test_long_words_are_shortened():
    assert len(server_words(b"x" * 10_000)[0]) < 500
