"""What a foreign format has no place for, kept beside it so that our own records come back whole.

Under the key `dreamgym` (ATIF: `extra.dreamgym`) stands the native record without its texts; those
are the conversation itself and are read from there. Where a conversation cannot carry the texts
exactly, say because an action looks like reasoning, the native record is kept with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dreamgym.codec import decode, encode
from dreamgym.errors import RecordError
from dreamgym.records.dialogue import Speaker, Turn, with_content_id
from dreamgym.records.fields import read_list, read_object
from dreamgym.types import Trajectory, digest

KEY = "dreamgym"


def first_message(trajectory: Trajectory) -> str:
    """Return what a conversation begins with: the goal, then the first state."""
    goal, opening = trajectory.task.goal, trajectory.opening.text
    return f"{goal}\n\n{opening}" if goal else opening


def outcome(trajectory: Trajectory) -> dict[str, Any]:
    """Return total reward and success for other tools to see; a failed episode has neither."""
    if trajectory.error is not None or not math.isfinite(trajectory.total_reward):
        return {}
    return {"reward": trajectory.total_reward, "success": trajectory.success}


def keep(trajectory: Trajectory, reread: Callable[[dict[str, Any]], Trajectory]) -> dict[str, Any]:
    """Return what has to stand beside a conversation; `reread` reads it back with that."""
    native = json.loads(encode(trajectory))
    bare = {"record": _without_texts(native), "texts": _texts_digest(trajectory)}
    try:
        if reread(bare) == trajectory:
            return bare
    except RecordError:
        pass
    return {"record": json.loads(encode(trajectory))}


def restore(kept: Any, turns: Sequence[Turn], *, format_name: str) -> Trajectory:
    """Put a kept record and its conversation together again.

    A conversation that was changed since is a new trajectory: it gets an id of its own and counts
    as imported.
    """
    box = read_object(kept, KEY)
    record = read_object(box.get("record"), f"{KEY}.record")
    if "texts" not in box:
        return _decoded(record)
    trajectory = _decoded(_with_texts(record, turns))
    if _texts_digest(trajectory) == box["texts"]:
        return trajectory
    provenance = replace(trajectory.provenance, behaviour=f"imported:{format_name}")
    return with_content_id(replace(trajectory, provenance=provenance))


def _decoded(record: dict[str, Any]) -> Trajectory:
    return decode(json.dumps(record), Trajectory)


def _without_texts(native: dict[str, Any]) -> dict[str, Any]:
    del native["opening"]["text"]
    for step in native["steps"]:
        step.pop("reasoning", None)
        del step["action"]["text"], step["result"]["observation"]["text"]
    return native


def _with_texts(record: dict[str, Any], turns: Sequence[Turn]) -> dict[str, Any]:
    spoken = [turn for turn in turns if turn.speaker is not Speaker.RULES]
    steps = read_list(record, "steps")
    expected = [Speaker.WORLD, *([Speaker.AGENT, Speaker.WORLD] * len(steps))]
    if [turn.speaker for turn in spoken] != expected:
        raise RecordError(
            f"{KEY} keeps {len(steps)} steps, but the conversation is not {len(steps)} actions "
            f"with a state before and after each; remove '{KEY}' to read the conversation alone"
        )
    goal = read_object(record.get("task"), f"{KEY}.record.task").get("goal", "")
    opening = spoken[0].text.removeprefix(f"{goal}\n\n") if goal else spoken[0].text
    filled = []
    for at, step in enumerate(steps):
        where = f"{KEY}.record.steps[{at}]"
        entry = dict(read_object(step, where))
        action, answer = spoken[2 * at + 1], spoken[2 * at + 2]
        result = dict(read_object(entry.get("result"), f"{where}.result"))
        seen = read_object(result.get("observation"), f"{where}.result.observation")
        result["observation"] = {**seen, "text": answer.text}
        entry["result"] = result
        entry["action"] = {
            **read_object(entry.get("action"), f"{where}.action"),
            "text": action.text,
        }
        if action.reasoning is not None:
            entry["reasoning"] = action.reasoning
        filled.append(entry)
    start = read_object(record.get("opening"), f"{KEY}.record.opening")
    return {**record, "opening": {**start, "text": opening}, "steps": filled}


def _texts_digest(trajectory: Trajectory) -> str:
    texts = [trajectory.opening.text]
    for step in trajectory.steps:
        reasoning = "" if step.reasoning is None else f"={step.reasoning}"
        texts += [step.action.text, reasoning, step.result.observation.text]
    return digest("\x1f".join(texts))
