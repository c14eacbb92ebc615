"""The OpenAI wire format: requests to JSON bodies, replies to completions.

Pure functions. Servers differ in what they offer beyond the common ground; a `Dialect` says what
may be asked of one. A field that a server does not know is ignored by some and refused by others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dreamgym.errors import ConfigError, LLMRefused, did_you_mean
from dreamgym.llm.prompt import flat_prompt
from dreamgym.types import Completion, Request, SampledTokens, Usage

_SCHEMAS = ("none", "openai", "llamacpp")
_WORDS_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands beyond plain chats and completions."""

    schema: str = "none"
    """How a JSON schema is sent: none (not at all), openai (`response_format`), or llamacpp
    (`json_schema`, which llama.cpp turns to a grammar for chats and completions alike; it takes
    grammars too)."""
    logprobs: bool = False
    """Ask for the probability of each token; ids come with them from llama.cpp and vLLM."""
    max_tokens_field: str = "max_tokens"
    """The name of the length limit in chats; newer hosted models want `max_completion_tokens`."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields for every request, such as `top_p`."""
    chat: bool = True
    """The server answers chats; otherwise a chat is sent as one text, `role: content`."""

    def __post_init__(self) -> None:
        """Check the names."""
        if self.schema not in _SCHEMAS:
            hint = did_you_mean(self.schema, _SCHEMAS)
            raise ConfigError(f"schema '{self.schema}' is not a way to send one.{hint}")


DIALECTS: Mapping[str, Dialect] = {
    "plain": Dialect(),
    "openai": Dialect(schema="openai", max_tokens_field="max_completion_tokens"),
    "llamacpp": Dialect(schema="llamacpp", logprobs=True),
    "vllm": Dialect(schema="openai", logprobs=True, extra={"return_token_ids": True}),
}
"""Dialects by name, for configuration files."""


class UnusableReply(Exception):
    """A reply that is not what the protocol says. Stays inside the package."""

    def __init__(self, words: str, *, usage: Usage | None = None) -> None:
        super().__init__(words)
        self.usage = usage


def encode_request(request: Request, *, model: str, dialect: Dialect) -> tuple[str, bytes]:
    """Return the path under the server's base URL, and the body."""
    body: dict[str, Any] = {"model": model}
    stop = request.stop
    if isinstance(request.prompt, str) or not dialect.chat:
        path, length_field = "completions", "max_tokens"
        body["prompt"] = flat_prompt(request.prompt)
        if not isinstance(request.prompt, str):
            # A model that goes on from the text would write the next question itself.
            body["prompt"] += "\n\nassistant:"
            stop = (*stop, "\n\nuser:")
    else:
        path, length_field = "chat/completions", dialect.max_tokens_field
        body["messages"] = [{"role": m.role, "content": m.content} for m in request.prompt]
    body[length_field] = request.max_tokens
    body["temperature"] = request.temperature
    if stop:
        body["stop"] = list(stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if dialect.logprobs:
        # One alternative is the fewest that makes llama.cpp send any probability at all.
        chat = path != "completions"
        body |= {"logprobs": True, "top_logprobs": 1} if chat else {"logprobs": 1}
    body |= _schema_fields(request, dialect)
    body |= dialect.extra
    # ASCII only, so that half a surrogate pair in a prompt cannot break the encoding.
    return path, json.dumps(body, allow_nan=False).encode("ascii")


def _schema_fields(request: Request, dialect: Dialect) -> dict[str, Any]:
    if request.grammar is not None and dialect.schema == "llamacpp":
        return {"grammar": request.grammar}
    if request.json_schema is None or dialect.schema == "none":
        return {}
    try:
        schema = json.loads(request.json_schema)
    except ValueError as error:
        raise LLMRefused(f"the request's json_schema is not JSON: {error}") from error
    if dialect.schema == "llamacpp":
        return {"json_schema": schema}
    named = {"name": "reply", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def decode_reply(body: bytes, *, model: str) -> Completion:
    """Read a completion. Raises `UnusableReply` for anything that is not one.

    Raises `LLMRefused` where the server's content filter cut the answer short.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnusableReply(f"the reply is not JSON ({len(body)} bytes): {error}") from None
    if not isinstance(reply, dict):
        raise UnusableReply(f"the reply is a JSON {type(reply).__name__}, not an object")
    usage = read_usage(reply)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnusableReply("the reply holds no choice", usage=usage)
    choice = choices[0]
    if choice.get("finish_reason") == "content_filter":
        raise LLMRefused("the server's content filter stopped the answer")
    truncated = choice.get("finish_reason") == "length"
    text = _text(choice, truncated=truncated)
    if text is None:
        raise UnusableReply("the reply holds no text", usage=usage)
    said = reply.get("model")
    return Completion(
        # Half a surrogate pair cannot be written to any file later on.
        text=text.encode("utf-8", "replace").decode("utf-8"),
        model=said if isinstance(said, str) and said else model,
        truncated=truncated,
        usage=usage or Usage(),
        tokens=_tokens(choice),
    )


def _text(choice: Mapping[str, Any], *, truncated: bool) -> str | None:
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    if text is None and isinstance(message, dict) and truncated:
        # All tokens went into reasoning that the server keeps apart: an answer, but an empty one.
        return ""
    return text if isinstance(text, str) else None


def read_usage(reply: object) -> Usage | None:
    """Return the tokens that a reply says it took, or None where it does not say."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if _is_count(count) else None for count in counts)
    if prompt is None or completion is None:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _tokens(choice: Mapping[str, Any]) -> SampledTokens | None:
    """Return ids and logprobs if the server gave both, for every token; half of it is no use."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return None
    # The older shape of the completions endpoint, and vLLM's own field for ids.
    values: object = logprobs.get("token_logprobs")
    ids: object = choice.get("token_ids")
    entries = logprobs.get("content")
    if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
        values = [entry.get("logprob") for entry in entries]
        ids = ids or [entry.get("id") for entry in entries]
    if not isinstance(ids, list) or not isinstance(values, list) or len(ids) != len(values):
        return None
    if not all(_is_count(token) for token in ids):
        return None
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return None
    return SampledTokens(ids=tuple(ids), logprobs=tuple(map(float, values)))


def server_words(body: bytes) -> tuple[str, str]:
    """Return what a server says went wrong, and the code it gives for it (may be empty)."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return _shorten(body.decode("utf-8", "replace")), ""
    error = reply.get("error", reply) if isinstance(reply, dict) else reply
    if isinstance(error, dict):
        words = error.get("message") or error.get("detail") or error
        code = error.get("code") or error.get("type") or ""
        return _shorten(words if isinstance(words, str) else json.dumps(words)), str(code)
    return _shorten(error if isinstance(error, str) else json.dumps(error)), ""


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_SHOWN else f"{line[:_WORDS_SHOWN]}..."
