"""Reading fields of foreign records: the value in the expected type, or why it is not there.

The lists of names say where ids, goals and outcomes come from; `docs/formats.md` repeats them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from dreamgym.errors import RecordError
from dreamgym.records.dialogue import About

ITEM_NAMES = ("task_id", "item_id", "instance_id", "id", "traj_id", "conversation_id")
ENV_NAMES = ("env", "environment", "env_name")
GOAL_NAMES = ("goal", "task", "instruction", "task_description", "question")
REWARD_NAMES = ("reward", "total_reward", "return")
SUCCESS_NAMES = ("success", "is_success", "resolved", "solved", "won")
DONE_NAMES = ("done", "terminated")
NESTED = ("metadata", "extra", "info")
"""Objects of a record in which the names above are looked for as well."""

_NUMBERED = re.compile(r"([A-Za-z]\w*?)_\d+")
"""An id that begins with its environment, such as `webshop_123`."""

Record = Mapping[str, Any]


def read_about(record: Record) -> About:
    """Read what a record says about itself as a whole."""
    places = [record, *(record[name] for name in NESTED if isinstance(record.get(name), dict))]
    if isinstance(record.get("task"), dict):
        places.insert(0, record["task"])
    item = _first_text(places, ITEM_NAMES)
    numbered = _NUMBERED.fullmatch(item)
    return About(
        item=item,
        env=_first_text(places, ENV_NAMES) or (numbered[1] if numbered else ""),
        goal=_first_text(places, GOAL_NAMES),
        reward=first_number(places, REWARD_NAMES),
        success=first_flag(places, SUCCESS_NAMES),
        done=first_flag(places, DONE_NAMES),
    )


def _first_text(places: Iterable[Record], names: Iterable[str]) -> str:
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
            if isinstance(value, int) and not isinstance(value, bool) and names is ITEM_NAMES:
                return str(value)
    return ""


def first_number(places: Iterable[Record], names: Iterable[str]) -> float | None:
    """Return the first number under one of the names; a truth value counts as 0 or 1."""
    for place in places:
        for name in names:
            value = place.get(name)
            if value is None:
                continue
            if not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
                raise RecordError(f"{name} is {_shown(value)}, not a number")
            return float(value)
    return None


def first_flag(places: Iterable[Record], names: Iterable[str]) -> bool | None:
    """Return the first truth value under one of the names; 0 and 1 count as such."""
    for place in places:
        for name in names:
            value = place.get(name)
            if value is None:
                continue
            if value not in (0, 1):
                raise RecordError(f"{name} is {_shown(value)}, neither true nor false")
            return bool(value)
    return None


def read_list(record: Record, name: str) -> list[Any]:
    """Return a list, also one that was written as a text of its own."""
    value = record.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{name} is a text that holds no JSON: {error}") from error
    if not isinstance(value, list):
        raise RecordError(f"{name} is {_shown(value)}, not a list")
    return value


def read_object(value: Any, where: str) -> dict[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise RecordError(f"{where} is {_shown(value)}, not an object")
    return value


def read_text(value: Any, where: str) -> str:
    """Return a text, also one in parts; of a part that is no text, say an image, its kind."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise RecordError(f"{where} is {_shown(value)}, not a text")
    parts = []
    for at, part in enumerate(value):
        kind = read_object(part, f"{where}[{at}]").get("type")
        text = part.get("text")
        parts.append(text if isinstance(text, str) else f"[{kind}]")
    return "\n".join(parts)


def read_call(name: Any, arguments: Any, where: str) -> str:
    """Write a tool call as an action: `name({"argument": "value"})`."""
    if not isinstance(name, str) or not name:
        raise RecordError(f"{where} names no function")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return f"{name}({arguments})"
    if not arguments:
        return f"{name}()"
    return f"{name}({json.dumps(arguments, sort_keys=True, ensure_ascii=False)})"


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, dict | list):
        return f"a JSON {'object' if isinstance(value, dict) else 'list'}"
    return repr(value)[:60]
