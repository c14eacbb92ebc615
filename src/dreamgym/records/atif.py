"""ATIF v1.0 to v1.8, the Agent Trajectory Interchange Format: a document per file, or per line.

The format has no rewards. We write them where it allows anything: `reward` and the flags in each
step's `extra`, totals in `final_metrics.extra`; and read them from there. Steps copied from another
trajectory for context are skipped, as the format demands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
from dreamgym.types import Step, Trajectory

NAME = "atif"
SCHEMA = "ATIF-v1.8"
"""What we write. Everything used is there since v1.4, so older readers can do with it."""

SPEAKERS = {"system": Speaker.RULES, "user": Speaker.WORLD, "agent": Speaker.AGENT}

_READABLE = re.compile(r"ATIF-v1\.\d+")


def claims(record: Record) -> bool:
    """Say whether a record is of this format."""
    return str(record.get("schema_version", "")).startswith("ATIF") and "steps" in record


def read(record: Record, defaults: Defaults) -> Trajectory:
    """Read a document as a trajectory."""
    version = record.get("schema_version")
    if not isinstance(version, str) or not _READABLE.fullmatch(version):
        raise RecordError(f"schema_version is {version!r}; ATIF-v1.x can be read")
    turns: list[Turn] = []
    for at, entry in enumerate(read_list(record, "steps")):
        step = read_object(entry, f"steps[{at}]")
        if not step.get("is_copied_context"):
            turns += _turns(step, f"steps[{at}]")
    extra = _object_or_nothing(record, "extra", "document")
    if extra.get(kept.KEY) is not None:
        return kept.restore(extra[kept.KEY], turns, format_name=NAME)
    metrics = _object_or_nothing(record, "final_metrics", "document")
    totals = _object_or_nothing(metrics, "extra", "final_metrics")
    # The document's own id rather than that of the run, which several may share.
    named = record.get("trajectory_id") or record.get("session_id")
    about = read_about({"id": named, **extra, **totals})
    return assemble(turns, about, defaults, format_name=NAME)


def write(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield the document of a trajectory."""
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "message": kept.first_message(trajectory)}
    ]
    steps += [_step(at, step) for at, step in enumerate(trajectory.steps, start=2)]
    about = {
        "task_id": trajectory.task.id,
        "env": trajectory.task.env,
        "goal": trajectory.task.goal,
    }
    totals = {**about, **kept.outcome(trajectory)}
    record: dict[str, Any] = {
        "schema_version": SCHEMA,
        "session_id": trajectory.id,
        "trajectory_id": trajectory.id,
        "agent": {
            "name": trajectory.provenance.behaviour or "unknown",
            "version": trajectory.provenance.engine or "unknown",
        },
        "steps": steps,
        "final_metrics": {"total_steps": len(steps), "extra": totals},
    }
    keep = kept.keep(trajectory, lambda box: read({**record, "extra": {kept.KEY: box}}, Defaults()))
    yield {**record, "extra": {kept.KEY: keep}}


def _step(number: int, step: Step) -> dict[str, Any]:
    result = step.result
    flags = ("terminated", "truncated", "success", "refused")
    entry: dict[str, Any] = {
        "step_id": number,
        "source": "agent",
        "message": step.action.text,
        "observation": {"results": [{"content": result.observation.text}]},
        "extra": {"reward": result.reward, **{f: True for f in flags if getattr(result, f)}},
    }
    if step.reasoning is not None:
        entry["reasoning_content"] = step.reasoning
    if step.action.tokens is not None:
        tokens = step.action.tokens
        entry["metrics"] = {
            "completion_token_ids": list(tokens.ids),
            "logprobs": list(tokens.logprobs),
        }
    return entry


def _turns(step: Record, where: str) -> Iterator[Turn]:
    """Yield what a step says, and what its observation answered."""
    source = step.get("source")
    if not isinstance(source, str) or source not in SPEAKERS:
        raise RecordError(f"{where}.source is {source!r}; known are {', '.join(SPEAKERS)}")
    speaker = SPEAKERS[source]
    text, reasoning = read_text(step.get("message"), f"{where}.message"), None
    extra = _object_or_nothing(step, "extra", where)
    if speaker is Speaker.AGENT:
        reasoning, text = _action(step, text, where)
    if text or speaker is Speaker.AGENT:
        yield Turn(
            speaker,
            text,
            reasoning,
            reward=first_number([extra], ["reward"]),
            done=first_flag([extra], DONE_NAMES),
            success=first_flag([extra], ["success"]),
        )
    if step.get("observation") is not None:
        observation = read_object(step["observation"], f"{where}.observation")
        results = [
            read_text(read_object(entry, f"{where}.observation").get("content"), where)
            for entry in read_list(observation, "results")
        ]
        yield Turn(Speaker.WORLD, "\n".join(results))


def _action(step: Record, text: str, where: str) -> tuple[str | None, str]:
    stated = step.get("reasoning_content")
    reasoning = read_text(stated, f"{where}.reasoning_content") if stated is not None else None
    if not step.get("tool_calls"):
        return (reasoning, text) if reasoning is not None else split_thought(text)
    calls = []
    for at, entry in enumerate(read_list(step, "tool_calls")):
        call = read_object(entry, f"{where}.tool_calls[{at}]")
        calls.append(read_call(call.get("function_name"), call.get("arguments"), where))
    said = "\n".join(part for part in (reasoning, text.strip()) if part)
    return said or None, "\n".join(calls)


def _object_or_nothing(record: Record, name: str, where: str) -> dict[str, Any]:
    value = record.get(name)
    return {} if value is None else read_object(value, f"{where}.{name}")
