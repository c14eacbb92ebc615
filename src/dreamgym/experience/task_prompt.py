"""The prompts and parsers of two jobs besides the step: a task's first state, and new tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.experience.state import SAID
from dreamgym.types import Message, Task


@dataclass(frozen=True, slots=True)
class Example:
    """A known task: its goal and how it opens."""

    goal: str
    first_state: str


@dataclass(frozen=True, slots=True)
class Variation:
    """A new task: its goal and how it opens."""

    goal: str
    first_state: str


FIRST_STATE = """\
You are the environment that an agent acts in. Write the state in which a task begins, laid out \
exactly as in the examples: the same kinds of lines in the same order, everything that the task \
needs somewhere to be found, nothing solved yet. Answer with \
the state between <state> and </state>."""

VARIATION = """\
You make new tasks for agents in one environment. You are given tasks that agents sometimes solve \
and sometimes fail. Write variations of them: other goals of the same difficulty that this \
environment allows, each with the state it begins in, laid out exactly as in the examples. \
Change what has to be found, moved or made, and where things are; never copy an example. Answer \
with a JSON list and nothing else: [{"goal": "...", "first_state": "line 1\\nline 2"}]"""


def first_state_prompt(task: Task, examples: Sequence[Example]) -> tuple[Message, ...]:
    """Return the prompt that asks for the opening state of a task."""
    parts = [_example(number, one) for number, one in enumerate(examples, start=1)]
    parts.append(f"Task: {' '.join(task.goal.split())}")
    return Message("system", FIRST_STATE), Message("user", "\n\n".join(parts))


def read_first_state(text: str) -> str:
    """Read an opening state."""
    found = re.findall(r"(?is)<state>(.*?)</state>", text)
    if len(found) != 1:
        raise ValueError(f"there are {len(found)} blocks <state>...</state>; give exactly one")
    return _checked_state(found[0])


def variation_prompt(
    tasks: Sequence[Example], examples: Sequence[Example], *, count: int
) -> tuple[Message, ...]:
    """Return the prompt that asks for variations of tasks."""
    parts = [_example(number, one) for number, one in enumerate(tasks, start=1)]
    if examples:
        others = [_example(number, one) for number, one in enumerate(examples, len(tasks) + 1)]
        parts += ["Other tasks of the same environment:", *others]
    parts.append(f"Write {count} variation{'s' if count > 1 else ''} of the first {len(tasks)}.")
    return Message("system", VARIATION), Message("user", "\n\n".join(parts))


def read_variations(text: str, *, count: int) -> tuple[Variation, ...]:
    """Read variations; exactly as many as were asked for."""
    start, end = text.find("["), text.rfind("]")
    if start < 0 or end < start:
        raise ValueError("there is no JSON list")
    try:
        entries = json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the list is not JSON: {error}") from None
    if not isinstance(entries, list) or len(entries) != count:
        found = len(entries) if isinstance(entries, list) else type(entries).__name__
        raise ValueError(f"a list of {count} variations was asked for, this is {found}")
    return tuple(_variation(number, entry) for number, entry in enumerate(entries, start=1))


def _variation(number: int, entry: object) -> Variation:
    if not isinstance(entry, dict):
        raise ValueError(f"variation {number} is not an object")
    goal, state = entry.get("goal"), entry.get("first_state")
    if not isinstance(goal, str) or not goal.strip():
        raise ValueError(f"variation {number} has no goal")
    if not isinstance(state, str):
        raise ValueError(f"variation {number} has no first_state")
    return Variation(" ".join(goal.split()), _checked_state(state))


def _checked_state(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().split("\n")]
    if not any(lines):
        raise ValueError("the first state is empty")
    if any(line.startswith(SAID) for line in lines):
        raise ValueError(
            f"a first state has no line that starts with '{SAID}': nothing was done yet"
        )
    return "\n".join(lines)


def _example(number: int, one: Example) -> str:
    return f"Example {number}\nTask: {' '.join(one.goal.split())}\nState:\n{one.first_state}"
