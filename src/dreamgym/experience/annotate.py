"""Reasoning for recorded steps: why an action leads to its next state (the paper's App. C.1).

Two annotators. The rule-based one explains the difference between the two states in a few fixed
words, for small models and for when no language model is at hand. The teacher is a language model
that is shown a whole trajectory per call and must answer with strict JSON, one entry per step.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dreamgym.errors import LLMBudget, LLMDown, LLMError
from dreamgym.experience.edit import Edit, Verb, diff, render
from dreamgym.experience.phrases import cut, places
from dreamgym.in_order import in_order
from dreamgym.llm.reply import ask
from dreamgym.protocols import LLM
from dreamgym.states import items, page_name
from dreamgym.types import Message, Request, Trajectory, Transition, digest

_SHOWN_PLACES = 3

RULE_DIGEST = digest("explanations by rule, 2")
"""Names the rule-based annotator in records. Raise the number when its words change."""


def explain(transition: Transition) -> str:
    """Explain a step by rule: which of its things are missing, what becomes of it, what changes.

    The explanation comes before the answer when a model learns it, so it goes the way one has to
    think: first what the action is about, then the decision, then what follows from it.
    """
    known = items(transition.state)
    missing = [phrase for phrase in cut(transition.action).phrases if not places(known, phrase)]
    verdict = "refused" if transition.refused else "carried out"
    change = _change(transition, diff(transition.state, transition.next_state))
    parts = [f"{phrase} is not in sight" for phrase in missing]
    parts.append(f"{verdict}: {change}")
    if transition.success:
        parts.append("the task is achieved")
    elif transition.done:
        parts.append("the task is lost")
    return "; ".join(parts)


def _change(transition: Transition, edit: Edit) -> str:
    if edit.page is not None:
        return f"on to {page_name(transition.next_state)}"
    if not edit.ops:
        return "nothing changes"
    words = []
    for op in edit.ops:
        if op.verb in (Verb.REPLACE, Verb.ENTER, Verb.LEAVE):
            words.append(f"#{op.item} changes")
        elif op.verb is Verb.DROP:
            words.append(f"#{op.item} goes")
        else:
            words.append(f"{op.text.partition(':')[0]} appears")
    return ", ".join(dict.fromkeys(words))


def annotate_by_rule(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with every step explained by rule."""
    return trajectory.with_reasoning(tuple(explain(one) for one in trajectory.transitions()))


TEACHER = """\
You are an expert of a text environment. You are shown one recorded episode: the task, whether it \
was achieved, and every step with what changed. For a model that has to play this environment, \
explain each step: what the action is about, whether the environment carries it out or refuses it \
and why, and how the environment has to answer. Items of a state are numbered from #0; a change \
names them. Say only what can be known from the task, the steps before and the state; never hint \
at later steps.

Answer with one JSON object and nothing else:
{"task_tutorial": {"Overall Plan": "...", "Success Mode": "...", "Failure Mode": "..."},
 "state_transitions": [{"step_id": 1, "transition_plan": "..."}]}
The tutorial has one sentence each; the list has one entry per step, in order."""

TEACHER_DIGEST = digest(TEACHER)
"""Names the teacher's prompt in records."""

_TUTORIAL = ("Overall Plan", "Success Mode", "Failure Mode")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a teacher says about an episode."""

    plan: str
    success_mode: str
    failure_mode: str
    reasoning: tuple[str, ...]
    """One explanation per step."""


@dataclass(frozen=True, slots=True)
class Taught:
    """One trajectory after the teacher: annotated, or why it is not."""

    trajectory: Trajectory
    lesson: Lesson | None
    problem: str = ""


def teacher_prompt(trajectory: Trajectory) -> tuple[Message, ...]:
    """Return the prompt that shows a whole trajectory."""
    parts = [
        f"Task: {' '.join(trajectory.task.goal.split())}",
        f"Achieved: {trajectory.success}",
        f"First state:\n{trajectory.opening.text}",
    ]
    for one in trajectory.transitions():
        change = render(diff(one.state, one.next_state)) or "nothing changes"
        flags = f"Refused: {one.refused}  Done: {one.done}  Success: {one.success}"
        action = " ".join(one.action.split())
        parts.append(f"Step {one.index + 1}\nAction: {action}\nAnswer: {change}\n{flags}")
    parts.append(f"There are {len(trajectory.steps)} steps.")
    return Message("system", TEACHER), Message("user", "\n\n".join(parts))


def read_lesson(text: str, *, steps: int) -> Lesson:
    """Read a teacher's answer. Raises `ValueError` that says what is wrong with it."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object")
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is not JSON: {error}") from None
    tutorial, plans = value.get("task_tutorial"), value.get("state_transitions")
    if not isinstance(tutorial, dict):
        raise ValueError("task_tutorial is missing or not an object")
    for name in _TUTORIAL:
        if not isinstance(tutorial.get(name), str):
            raise ValueError(f"task_tutorial has no text '{name}'")
    if not isinstance(plans, list):
        raise ValueError("state_transitions is missing or not a list")
    if len(plans) != steps:
        raise ValueError(f"state_transitions has {len(plans)} entries, there are {steps} steps")
    reasoning = tuple(_plan(number, entry) for number, entry in enumerate(plans, start=1))
    plan, success_mode, failure_mode = (tutorial[name].strip() for name in _TUTORIAL)
    return Lesson(plan, success_mode, failure_mode, reasoning)


def _plan(number: int, entry: object) -> str:
    if not isinstance(entry, dict):
        raise ValueError(f"entry {number} of state_transitions is not an object")
    if entry.get("step_id") != number:
        raise ValueError(f"entry {number} has step_id {entry.get('step_id')!r}, not {number}")
    plan = entry.get("transition_plan")
    if not isinstance(plan, str) or not plan.strip():
        raise ValueError(f"entry {number} has no transition_plan")
    return " ".join(plan.split())


def teach(
    llm: LLM,
    trajectories: Iterable[Trajectory],
    *,
    retries: int = 2,
    max_tokens: int = 4096,
    concurrency: int = 1,
    skip: Callable[[Trajectory], bool] | None = None,
    seed: Callable[[Trajectory], int | None] = lambda trajectory: None,
    on_leftover: Callable[[Taught], None] = lambda taught: None,
) -> AsyncGenerator[Taught, None]:
    """Annotate trajectories, many at a time; store each as it comes, and a run can be resumed.

    Results come in the order of the trajectories. By default a trajectory whose steps all carry
    reasoning is skipped: it is done. A trajectory that the teacher cannot be brought to annotate
    comes back unchanged with the problem; an outage or a spent budget stops the run. What is there
    by then but was not yielded yet goes to `on_leftover`. A cache repeats also an answer that could
    not be read; another `seed` than the last time asks anew.
    """
    done = skip or is_annotated
    jobs = (
        partial(
            _taught,
            llm,
            trajectory,
            retries=retries,
            max_tokens=max_tokens,
            seed=seed(trajectory),
        )
        for trajectory in trajectories
        if trajectory.steps and not done(trajectory)
    )
    return in_order(jobs, concurrency=concurrency, on_leftover=on_leftover)


async def _taught(
    llm: LLM, trajectory: Trajectory, *, retries: int, max_tokens: int, seed: int | None
) -> Taught:
    def read(text: str) -> Lesson:
        return read_lesson(text, steps=len(trajectory.steps))

    request = Request(
        teacher_prompt(trajectory),
        max_tokens=max_tokens,
        seed=seed,
        json_schema=json.dumps(_schema(len(trajectory.steps))),
    )
    try:
        lesson = (await ask(llm, request, read, retries=retries)).value
    except (LLMDown, LLMBudget):
        raise
    except LLMError as error:
        return Taught(trajectory, None, f"{type(error).__name__}: {error}")
    return Taught(trajectory.with_reasoning(lesson.reasoning), lesson)


def is_annotated(trajectory: Trajectory) -> bool:
    """Say whether every step carries reasoning."""
    return all(step.reasoning for step in trajectory.steps)


def _schema(steps: int) -> dict[str, Any]:
    """Return what an answer about so many steps must look like, for servers that enforce it."""
    text = {"type": "string"}
    entry = _object({"step_id": {"type": "integer"}, "transition_plan": text})
    plans = {"type": "array", "items": entry, "minItems": steps, "maxItems": steps}
    tutorial = _object(dict.fromkeys(_TUTORIAL, text))
    return _object({"task_tutorial": tutorial, "state_transitions": plans})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    # Hosted servers refuse an object that leaves open which fields it has.
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
