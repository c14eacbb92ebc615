"""Views of a prompt that every back end needs: as one text, and as a bound on its tokens."""

from __future__ import annotations

from dreamgym.types import Message, Request

_TOKENS_PER_MESSAGE = 16
_TOKENS_PER_PROMPT = 64
"""Room for what chat templates add: role marks, a date line, a default system message."""


def flat_prompt(prompt: str | tuple[Message, ...]) -> str:
    """Return a prompt as one text; a chat becomes one `role: content` paragraph per message."""
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(f"{message.role}: {message.content}" for message in prompt)


def prompt_token_bound(request: Request) -> int:
    """Return a number of tokens that the prompt does not pass, whatever the tokenizer.

    A token stands for at least one byte of text, so the bytes are a bound; in English the real
    number is about a quarter of it.
    """
    if isinstance(request.prompt, str):
        return _TOKENS_PER_PROMPT + _size(request.prompt)
    sizes = (_TOKENS_PER_MESSAGE + _size(message.content) for message in request.prompt)
    return _TOKENS_PER_PROMPT + sum(sizes)


def prompt_token_guess(request: Request) -> int:
    """Return about as many tokens as the prompt will take: one per four bytes."""
    return (prompt_token_bound(request) - _TOKENS_PER_PROMPT) // 4 + 8


def _size(text: str) -> int:
    # A lone surrogate cannot be encoded; three bytes is what it takes where it is let through.
    return len(text.encode("utf-8", "surrogatepass"))
