"""From a conversation to a trajectory: what every chat-like format has in common.

A format module turns its record into `Turn`s and `About`; `assemble` does the rest:
rules and examples at the head are left out, observations in a row become one, every action gets
the observation that followed it. Rewards and success come from the record or not at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dreamgym.codec import encode
from dreamgym.errors import RecordError
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
    digest,
)

UNNAMED_ENV = "imported"
"""The environment of records that do not name theirs."""


class Speaker(StrEnum):
    """Who a turn of a conversation belongs to."""

    RULES = "rules"
    """A system prompt: not part of any state."""
    WORLD = "world"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. What a source does not say is None."""

    speaker: Speaker
    text: str
    reasoning: str | None = None
    reward: float | None = None
    done: bool | None = None
    success: bool | None = None
    trained: bool | None = None
    """Whether the source counts the turn as the agent's own, or as context only."""


@dataclass(frozen=True, slots=True)
class About:
    """What a record says about its conversation as a whole."""

    item: str = ""
    env: str = ""
    goal: str = ""
    reward: float | None = None
    success: bool | None = None
    done: bool | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the importer of a file knows and its records may not say."""

    env: str | None = None
    split: Split = Split.TRAIN


def assemble(
    turns: Sequence[Turn], about: About, defaults: Defaults, *, format_name: str
) -> Trajectory:
    """Make a trajectory of a conversation. Raises `RecordError` where there is none in it."""
    spoken = _without_rules(turns)
    first = next((at for at, turn in enumerate(spoken) if turn.speaker is Speaker.AGENT), None)
    if first is None:
        raise RecordError("no action in it: no turn is the agent's")
    seen = [turn.text for turn in spoken[:first]]
    if not seen:
        # Some put all there is to know into the system prompt.
        seen = [turn.text for turn in turns if turn.speaker is Speaker.RULES]
    if not any(text.strip() for text in seen):
        raise RecordError("it begins with an action: there is no first state")
    _check_writable(spoken, seen, about)
    goal, opening = _split_goal(about.goal, seen)
    steps = _with_outcome(list(_steps(spoken[first:])), about)
    env = defaults.env or about.env or UNNAMED_ENV
    item = about.item or digest(f"{goal}\x1f{opening}")
    ended = steps[-1].result.terminated
    trajectory = Trajectory(
        id="",
        task=Task(_task_id(env, item), env, about.item, defaults.split, goal),
        opening=Observation(opening),
        steps=tuple(steps),
        stop=StopReason.TERMINATED if ended else StopReason.STEP_LIMIT,
        provenance=Provenance(Source.REAL, f"imported:{format_name}"),
    )
    return with_content_id(trajectory)


def with_content_id(trajectory: Trajectory) -> Trajectory:
    """Name a trajectory after its content, so that importing it twice is importing it once."""
    return replace(trajectory, id=f"imported-{digest(encode(replace(trajectory, id='')), size=12)}")


def split_thought(text: str) -> tuple[str | None, str]:
    """Part what an agent wrote into its reasoning and its action.

    Understands `<think>...</think> action` and ReAct in the spellings of the published sets:
    `Thought: ... Action: ...`, `THOUGHT: ... ACTION: ...`, `Think: ... Act: ...`.
    """
    for pattern in (_THINK_TAGS, _REACT):
        match = pattern.fullmatch(text)
        if match is not None:
            reasoning, rest = match["thought"].strip(), match["action"].strip()
            return reasoning or None, _ACTION.sub("", rest)
    return None, _ACTION.sub("", text.strip())


def join_thought(reasoning: str | None, action: str) -> str:
    """Write reasoning and action as ReAct text; an action alone stays as it is."""
    return action if reasoning is None else f"Thought:\n{reasoning}\n\nAction:\n{action}"


def _check_writable(turns: list[Turn], seen: list[str], about: About) -> None:
    words = [text for turn in turns for text in (turn.text, turn.reasoning or "")]
    try:
        "".join([*words, *seen, about.item, about.env, about.goal]).encode()
    except UnicodeEncodeError as error:
        raise RecordError("a text holds half a character (a lone surrogate)") from error


def _task_id(env: str, item: str) -> str:
    return item if item.startswith(env) else f"{env}#{item}"


def _without_rules(turns: Sequence[Turn]) -> list[Turn]:
    """Leave out system prompts, and the rules and examples that come as turns of their own."""
    spoken = [turn for turn in turns if turn.speaker is not Speaker.RULES]
    while (pair := _leading_pair(spoken)) and _is_context(spoken, pair):
        spoken = spoken[pair:]
    return spoken


def _leading_pair(turns: list[Turn]) -> int:
    """Return how many turns the first exchange has, observation to action; 0 if there is none."""
    for at, turn in enumerate(turns):
        if turn.speaker is Speaker.AGENT:
            return at + 1 if at else 0
    return 0


def _is_context(turns: list[Turn], pair: int) -> bool:
    """Say whether the first exchange only sets the scene for those that follow."""
    answer, later = turns[pair - 1], [t for t in turns[pair:] if t.speaker is Speaker.AGENT]
    if answer.trained is not None:
        return not answer.trained and any(turn.trained for turn in later)
    return bool(later) and _CONSENT.fullmatch(answer.text.strip()) is not None


def _split_goal(goal: str, seen: list[str]) -> tuple[str, str]:
    """Return the goal and the first state, from what was said before the first action."""
    whole = "\n".join(seen)
    if goal:
        return goal, whole
    for pattern in _GOALS:
        match = pattern.search(whole)
        if match is not None:
            return match[1].strip(), whole
    return seen[0], "\n".join(seen[1:]) or seen[0]


def _steps(turns: Sequence[Turn]) -> Iterator[Step]:
    """Pair every action with what followed it; an action that nothing answers has no next state."""
    at = 0
    while at < len(turns):
        action, at = turns[at], at + 1
        answers = []
        while at < len(turns) and turns[at].speaker is Speaker.WORLD:
            answers.append(turns[at])
            at += 1
        said, last = (action, *answers), at == len(turns)
        success = last and any(turn.success for turn in said)
        reward = float(sum(turn.reward for turn in said if turn.reward is not None))
        if not math.isfinite(reward):
            raise RecordError("the rewards of a step add up to no number")
        result = StepResult(
            Observation("\n".join(turn.text for turn in answers)),
            reward=reward,
            terminated=success or (last and any(turn.done for turn in said)),
            success=success,
        )
        yield Step(Action(action.text), result, reasoning=action.reasoning)


def _with_outcome(steps: list[Step], about: About) -> list[Step]:
    """Put what the record says of the whole onto the last step, unless the steps say it."""
    last = steps[-1].result
    stepwise = any(step.result.reward for step in steps)
    success = last.success if about.success is None else about.success
    result = replace(
        last,
        reward=last.reward if stepwise or about.reward is None else about.reward,
        terminated=last.terminated or success or bool(about.done),
        success=success,
    )
    return [*steps[:-1], replace(steps[-1], result=result)]


_THINK_TAGS = re.compile(r"\s*<think>(?P<thought>.*?)</think>(?P<action>.*)", re.DOTALL)
_REACT = re.compile(
    r"\s*(?:thoughts?|think|reasoning)\s*:(?P<thought>.*?)"
    r"(?:\n[ \t]*(?:action|act)|(?-i:\bACTION|\bAction))[ \t]*:(?P<action>.*)",
    re.DOTALL | re.IGNORECASE,
)
_ACTION = re.compile(r"\A(?:action|act)\s*:\s*", re.IGNORECASE)
_CONSENT = re.compile(
    r"(?:ok|okay|sure|understood|got it|i understand|i see|i'?m ready|ready)\b[^\n]{0,200}",
    re.IGNORECASE,
)
_GOALS = (
    re.compile(r"Your task is to:?\s*([^\n]+)", re.IGNORECASE),
    re.compile(r"Instruction:\s{0,9}\[SEP\](.{1,2000}?)\[SEP\]", re.DOTALL | re.IGNORECASE),
    re.compile(r"^[ \t]*(?:Your goal|Goal|Task|Instruction|Objective)[ \t]*:([^\n]+)", re.M | re.I),
)
