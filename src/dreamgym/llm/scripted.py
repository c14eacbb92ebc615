"""A language model that answers from a script. For tests, and for users' tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dreamgym.errors import LLMError
from dreamgym.llm.prompt import flat_prompt
from dreamgym.types import Completion, Request, Usage, digest

Line = str | Completion | Exception
"""What a script may hold: a text, a whole completion, or an error to raise."""
Script = Sequence[Line] | Mapping[str, Line] | Callable[[Request], Line]


class ScriptedLLM:
    """Answers from a script and remembers what it was asked.

    Args:
        script: one of three things. A *sequence* is said line by line, in order of the calls. A
            *mapping* is looked up by the prompt: a key is either the prompt's digest (see
            `prompt_digest`) or a regular expression found in it; the first that fits wins. A
            *function* gets the request. A chat counts as one text: see `flat_prompt`.

    Tokens in `usage` are counted as words. Stop texts are honoured; `max_tokens` is not.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._next = 0
        self.requests: list[Request] = []
        self.closed = False

    async def complete(self, request: Request) -> Completion:
        """Give the answer that the script has for this request."""
        self.requests.append(request)
        line = self._line(request)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Completion) else self._completion(request, line)

    def _line(self, request: Request) -> Line:
        script = self._script
        if isinstance(script, Mapping):
            return self._looked_up(script, request)
        if not isinstance(script, Sequence):
            return script(request)
        if self._next >= len(script):
            raise LLMError(
                f"the script ran out: it has {len(script)} lines, this is call {self._next + 1}, "
                f"prompt {_tail(request)}"
            )
        self._next += 1
        return script[self._next - 1]

    def _looked_up(self, script: Mapping[str, Line], request: Request) -> Line:
        name, text = prompt_digest(request), flat_prompt(request.prompt)
        for key, line in script.items():
            if key == name or re.search(key, text):
                return line
        raise LLMError(f"the script has no line for prompt {name}, {_tail(request)}")

    def _completion(self, request: Request, text: str) -> Completion:
        for stop in request.stop:
            text = text.partition(stop)[0] if stop else text
        words = Usage(len(flat_prompt(request.prompt).split()), len(text.split()))
        return replace(Completion(text=text, model="scripted"), usage=words)

    async def close(self) -> None:
        """Take note that it was closed."""
        self.closed = True


def prompt_digest(request: Request) -> str:
    """Return the short name of a request's prompt, as a mapping script may use it."""
    return digest(flat_prompt(request.prompt))


def _tail(request: Request) -> str:
    return repr(flat_prompt(request.prompt)[-120:])
