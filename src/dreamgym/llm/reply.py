"""Answers that must be read: ask, parse, and if that fails show the model what was wrong.

The budget here is for answers that came but could not be read. It has nothing to do with the
retries of a back end, which are for answers that did not come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dreamgym.errors import ReplyFormatError
from dreamgym.protocols import LLM
from dreamgym.types import Completion, Message, Request

T = TypeVar("T")

_SHOWN_TO_MODEL = 4_000
_KEPT = 20_000
"""Characters of an unreadable answer that its error carries."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """An answer that was read."""

    value: T
    completions: tuple[Completion, ...]
    """Every answer on the way, the readable one last."""


Amend = Callable[[Request, Completion, str], Request]
"""Makes the next request from the first one, an unreadable answer and what is wrong with it."""


async def ask(
    llm: LLM,
    request: Request,
    parse: Callable[[str], T],
    *,
    retries: int = 2,
    amend: Amend | None = None,
) -> Reply[T]:
    """Ask until `parse` accepts the answer, at most `1 + retries` times.

    Args:
        llm: who is asked.
        request: what is asked first.
        parse: reads the answer's text; says what is wrong with it by raising `ValueError`
            (`ReplyFormatError` is one). Anything else it raises is a bug and is let through.
        retries: how many unreadable answers are forgiven.
        amend: makes the request for the next try; by default `show_mistake`.

    Raises `ReplyFormatError` with the last answer as `raw`, or whatever the back end raises.
    """
    if retries < 0:
        raise ValueError(f"retries is {retries}; it must be 0 or more")
    completions: list[Completion] = []
    current = request
    while True:
        completion = await llm.complete(current)
        completions.append(completion)
        try:
            return Reply(parse(completion.text), tuple(completions))
        except ValueError as error:
            wrong = _describe(completion, error)
            if len(completions) > retries:
                count = f"{len(completions)} answer{'s' if len(completions) > 1 else ''}"
                raise ReplyFormatError(
                    f"{count} of {completion.model} could not be read; the last one: {wrong}",
                    raw=completion.text[:_KEPT],
                ) from error
        # Always from the first request: mistakes do not pile up in the prompt.
        current = (amend or show_mistake)(request, completion, wrong)


def show_mistake(request: Request, completion: Completion, wrong: str) -> Request:
    """Return the request with the unreadable answer and the complaint added to its prompt."""
    said = completion.text
    if len(said) > _SHOWN_TO_MODEL:
        said = said[:_SHOWN_TO_MODEL] + " ..."
    complaint = (
        f"That answer could not be read: {wrong}\n"
        "Answer the original request again, in exactly the format it asks for."
    )
    if isinstance(request.prompt, str):
        return replace(request, prompt=f"{request.prompt}{said}\n\n{complaint}\n\n")
    chat = (*request.prompt, Message("assistant", said), Message("user", complaint))
    return replace(request, prompt=chat)


def _describe(completion: Completion, error: ValueError) -> str:
    words = str(error).strip() or type(error).__name__
    if not completion.text.strip():
        return f"it is empty ({words})"
    if completion.truncated:
        return f"it was cut off for its length; be shorter ({words})"
    return words
