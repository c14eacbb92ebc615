"""The prompts and parsers of two jobs besides the step: a task's first state, and new tasks.

*Full* is a chat for instruct models; *compact* is a marked text for small models that were trained
on it, with no marks beyond those of the step. A compact variation of a task whose places are on
record begins in one of them: the model says its name, and the record supplies the rest verbatim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dreamgym.experience.prompt import END, MARKS, Style, unmarked
from dreamgym.states import SAID, body_of, page_name
from dreamgym.types import Message, Task, digest

MOST_PLACES = 12
"""Places of a task that a small model is shown."""
MOST_EXAMPLES = 3
"""Other tasks that a small model is shown."""


class Job(StrEnum):
    """What an experience model can be asked to do."""

    STEP = "step"
    FIRST_STATE = "first state"
    VARIATION = "variation"


@dataclass(frozen=True, slots=True)
class Example:
    """A known task: its goal, how it opens, and where else one can be in it."""

    goal: str
    first_state: str
    places: tuple[str, ...] = ()
    """States of its other places, as an agent that has just begun would find them. A small model
    needs them to vary a task inside its own world; `known_tasks` reads them off the record."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A new task: its goal and how it opens."""

    goal: str
    first_state: str
    source: int | None = None
    """The number of the task that it was made from, among those that were given; small models are
    asked for one variation of one task at a time, chat models mix."""


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


def first_state_prompt(
    task: Task, examples: Sequence[Example], *, style: Style = Style.FULL
) -> str | tuple[Message, ...]:
    """Return the prompt that asks for the opening state of a task."""
    if style is Style.COMPACT:
        return _known(examples) + _goal_given(task.goal)
    parts = [_example(number, one) for number, one in enumerate(examples, start=1)]
    parts.append(f"Task: {_one_line(task.goal)}")
    return Message("system", FIRST_STATE), Message("user", "\n\n".join(parts))


def first_state_text(state: str, *, style: Style) -> str:
    """Return an opening state as a model should write it: the inverse of `read_first_state`."""
    return f"{unmarked(state)}{END}" if style is Style.COMPACT else f"<state>\n{state}\n</state>"


def read_first_state(text: str, *, style: Style = Style.FULL) -> str:
    """Read an opening state."""
    if style is Style.COMPACT:
        return _checked_state(_before_end(text))
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


def variations_text(variations: Sequence[Variation]) -> str:
    """Return variations as a chat model should write them: the inverse of `read_variations`."""
    entries = [{"goal": one.goal, "first_state": one.first_state} for one in variations]
    return json.dumps(entries, ensure_ascii=False)


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
    return Variation(_one_line(goal), _checked_state(state))


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
    return f"Example {number}\nTask: {_one_line(one.goal)}\nState:\n{one.first_state}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- compact style: one variation of one task at a time -----------------------------------------


def one_variation_prompt(
    source: Example, examples: Sequence[Example] = (), *, keep_goal: bool
) -> str:
    """Return the compact prompt that asks for a variation of a task.

    Args:
        source: what is varied. Where its places are on record, the variation begins in one of them;
            where they are not, it begins in a state that the model writes.
        examples: other tasks, for variations that are written.
        keep_goal: ask for another beginning only; else for a goal as well.
    """
    if source.places:
        known = "".join(f"<same>{_news(place, source)}" for place in source.places[:MOST_PLACES])
        world = f"{known}<state>{unmarked(body_of(source.first_state))}"
    else:
        goal, state = unmarked(_one_line(source.goal)), unmarked(body_of(source.first_state))
        world = f"{_known(examples)}<past>{goal}<state>{state}"
    return world + (_goal_given(source.goal) if keep_goal else "<goal>")


def one_variation_text(variation: Variation, source: Example, *, keep_goal: bool) -> str:
    """Return a variation as a small model should write it: the inverse of `read_one_variation`."""
    state = page_name(variation.first_state) if source.places else variation.first_state
    goal = "" if keep_goal else f"{unmarked(_one_line(variation.goal))}<page>"
    return f"{goal}{unmarked(state)}{END}"


def read_one_variation(text: str, source: Example, *, keep_goal: bool) -> Variation:
    """Read a variation; a place is given as the record has it."""
    goal, said = source.goal, _before_end(text)
    if not keep_goal:
        goal, page, said = said.partition("<page>")
        if not page or not goal.strip():
            raise ValueError("a variation is a goal, then <page>, then where it begins")
    state = _checked_state(said)
    if any(mark in goal or mark in state for mark in MARKS):
        raise ValueError("a mark stands in the middle of the goal or the state")
    if source.places:
        state = _on_record(state, source)
    return Variation(_one_line(goal), state)


def _on_record(state: str, source: Example) -> str:
    """Return the place that a state names, as the record has it."""
    name = page_name(state)
    for place in (source.first_state, *source.places):
        if page_name(place) == name:
            return place
    raise ValueError(f"no place called '{name[:60]}' is on record")


def _known(examples: Sequence[Example]) -> str:
    """Return known tasks; the last ones count most, closest to where the answer begins."""
    return "".join(
        f"<refs>{unmarked(_one_line(one.goal))}<state>{unmarked(body_of(one.first_state))}"
        for one in examples[-MOST_EXAMPLES:]
    )


def _goal_given(goal: str) -> str:
    return f"<goal>{unmarked(_one_line(goal))}<page>"


def _news(place: str, source: Example) -> str:
    """Return what a place shows that the first state does not: the rest need not be read twice."""
    known = set(body_of(source.first_state).split("\n"))
    return unmarked("\n".join(line for line in body_of(place).split("\n") if line not in known))


def _before_end(text: str) -> str:
    return text.partition(END)[0].strip("\n ")


TASK_PROMPT_DIGEST = digest("\x1f".join([FIRST_STATE, VARIATION, "layout 1"]))
"""Changes with these prompts, apart from those of the step. Raise the layout when it changes."""
