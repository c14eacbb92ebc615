"""ShareGPT: `{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", ...}]}`.

A list in one file or one record per line. AgentTraj-L and AgentInstruct are of this kind: the first
exchange holds the rules (its `loss` is false), actions are ReAct text, `item_id` names the
environment, and no reward is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dreamgym.errors import RecordError
from dreamgym.records import kept
from dreamgym.records.dialogue import (
    Defaults,
    Speaker,
    Turn,
    assemble,
    join_thought,
    split_thought,
)
from dreamgym.records.fields import (
    DONE_NAMES,
    Record,
    first_flag,
    first_number,
    read_about,
    read_list,
    read_object,
    read_text,
)
from dreamgym.records.messages import summary
from dreamgym.types import Trajectory

NAME = "sharegpt"

SPEAKERS = {
    "system": Speaker.RULES,
    "human": Speaker.WORLD,
    "user": Speaker.WORLD,
    "observation": Speaker.WORLD,
    "environment": Speaker.WORLD,
    "tool": Speaker.WORLD,
    "function_response": Speaker.WORLD,
    "gpt": Speaker.AGENT,
    "assistant": Speaker.AGENT,
    "agent": Speaker.AGENT,
    "model": Speaker.AGENT,
    "function_call": Speaker.AGENT,
}


def claims(record: Record) -> bool:
    """Say whether a record is of this format."""
    return "conversations" in record


def read(record: Record, defaults: Defaults) -> Trajectory:
    """Read a conversation as a trajectory."""
    entries = read_list(record, "conversations")
    turns = [_turn(entry, f"conversations[{at}]") for at, entry in enumerate(entries)]
    if record.get("system"):
        turns.insert(0, Turn(Speaker.RULES, read_text(record["system"], "system")))
    if record.get(kept.KEY) is not None:
        return kept.restore(record[kept.KEY], turns, format_name=NAME)
    return assemble(turns, read_about(record), defaults, format_name=NAME)


def write(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield the conversation of a trajectory."""
    turns: list[dict[str, Any]] = [
        {"from": "human", "value": kept.first_message(trajectory), "loss": None}
    ]
    for step in trajectory.steps:
        said = join_thought(step.reasoning, step.action.text)
        turns.append({"from": "gpt", "value": said, "loss": True})
        turns.append({"from": "human", "value": step.result.observation.text, "loss": None})
    record: dict[str, Any] = {"conversations": turns, **summary(trajectory)}
    record[kept.KEY] = kept.keep(
        trajectory, lambda box: read({**record, kept.KEY: box}, Defaults())
    )
    yield record


def _turn(entry: Any, where: str) -> Turn:
    said = read_object(entry, where)
    name = said.get("from", said.get("role"))
    if not isinstance(name, str) or name.lower() not in SPEAKERS:
        raise RecordError(f"{where} is from {name!r}; known are {', '.join(SPEAKERS)}")
    speaker = SPEAKERS[name.lower()]
    text, reasoning = read_text(said.get("value", said.get("content")), f"{where}.value"), None
    if speaker is Speaker.AGENT:
        reasoning, text = split_thought(text)
    return Turn(
        speaker,
        text,
        reasoning,
        reward=first_number([said], ["reward"]),
        done=first_flag([said], DONE_NAMES),
        success=first_flag([said], ["success"]),
        trained=first_flag([said], ["loss"]) if speaker is Speaker.AGENT else None,
    )
