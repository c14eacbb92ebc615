"""OpenAI-style chat: `{"messages": [{"role": ..., "content": ...}, ...]}`, one per line.

Also reads tool calls, content parts, `reasoning_content`, a list written as text (SWE-smith) and
the `trajectory` of `role`/`text` pairs (SWE-agent). Rewards may stand at a message or the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dreamgym.errors import RecordError
from dreamgym.records import kept
from dreamgym.records.dialogue import Defaults, Speaker, Turn, assemble, split_thought
from dreamgym.records.fields import (
    DONE_NAMES,
    Record,
    first_flag,
    first_number,
    read_about,
    read_call,
    read_list,
    read_object,
    read_text,
)
from dreamgym.types import Trajectory

NAME = "messages"

SPEAKERS = {
    "system": Speaker.RULES,
    "developer": Speaker.RULES,
    "user": Speaker.WORLD,
    "tool": Speaker.WORLD,
    "function": Speaker.WORLD,
    "observation": Speaker.WORLD,
    "environment": Speaker.WORLD,
    "assistant": Speaker.AGENT,
    "agent": Speaker.AGENT,
    "ai": Speaker.AGENT,
}


def claims(record: Record) -> bool:
    """Say whether a record is of this format."""
    return "messages" in record or isinstance(record.get("trajectory"), list)


def read(record: Record, defaults: Defaults) -> Trajectory:
    """Read a chat as a trajectory."""
    name = "messages" if "messages" in record else "trajectory"
    turns = [_turn(entry, f"{name}[{at}]") for at, entry in enumerate(read_list(record, name))]
    if record.get(kept.KEY) is not None:
        return kept.restore(record[kept.KEY], turns, format_name=NAME)
    about = read_about(record)
    if name == "trajectory" and isinstance(record.get("target"), bool):
        about = replace(about, success=record["target"])
    return assemble(turns, about, defaults, format_name=NAME)


def write(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield the chat of a trajectory."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": kept.first_message(trajectory)},
    ]
    for step in trajectory.steps:
        said = {"role": "assistant", "content": step.action.text}
        if step.reasoning is not None:
            said["reasoning_content"] = step.reasoning
        messages += [said, {"role": "user", "content": step.result.observation.text}]
    record: dict[str, Any] = {"messages": messages, **summary(trajectory)}
    record[kept.KEY] = kept.keep(
        trajectory, lambda box: read({**record, kept.KEY: box}, Defaults())
    )
    yield record


def summary(trajectory: Trajectory) -> dict[str, Any]:
    """Return what other tools look for beside a conversation."""
    return {
        "id": trajectory.id,
        "task_id": trajectory.task.id,
        "env": trajectory.task.env,
        "goal": trajectory.task.goal,
        **kept.outcome(trajectory),
    }


def _turn(entry: Any, where: str) -> Turn:
    message = read_object(entry, where)
    role = message.get("role")
    if not isinstance(role, str) or role.lower() not in SPEAKERS:
        raise RecordError(f"{where} has the role {role!r}; known are {', '.join(SPEAKERS)}")
    speaker = SPEAKERS[role.lower()]
    content = message.get("content", message.get("text"))
    text, reasoning = read_text(content, f"{where}.content"), None
    if speaker is Speaker.AGENT:
        reasoning, text = _action(message, text, where)
    return Turn(
        speaker,
        text,
        reasoning,
        reward=first_number([message], ["reward"]),
        done=first_flag([message], DONE_NAMES),
        success=first_flag([message], ["success"]),
        trained=_trained(message, speaker),
    )


def _action(message: Record, text: str, where: str) -> tuple[str | None, str]:
    """Return reasoning and action; beside a tool call, the words are its reasoning."""
    stated = message.get("reasoning_content", message.get("reasoning"))
    reasoning = read_text(stated, f"{where}.reasoning_content") if stated is not None else None
    if not message.get("tool_calls"):
        if reasoning is not None:
            return reasoning, text
        return split_thought(text)
    calls = []
    for at, entry in enumerate(read_list(message, "tool_calls")):
        place = f"{where}.tool_calls[{at}]"
        function = read_object(read_object(entry, place).get("function"), f"{place}.function")
        calls.append(read_call(function.get("name"), function.get("arguments"), place))
    said = "\n".join(part for part in (reasoning, text.strip()) if part)
    return said or None, "\n".join(calls)


def _trained(message: Record, speaker: Speaker) -> bool | None:
    weight = message.get("weight", message.get("loss"))
    return bool(weight) if weight is not None and speaker is Speaker.AGENT else None
