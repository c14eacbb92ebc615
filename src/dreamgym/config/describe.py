"""The meaning of every setting, read from the string below its field, for CLI and docs alike."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted name, its value and what it means."""

    name: str
    value: object
    meaning: str


def describe(config: Any, *, place: str = "") -> Iterator[Setting]:
    """Yield every setting of a config in the order it is written."""
    meanings = _meanings(type(config))
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            yield from describe(value, place=f"{place}{item.name}.")
        else:
            yield Setting(f"{place}{item.name}", value, meanings[item.name])


def _meanings(kind: type) -> dict[str, str]:
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = " ".join(str(following.value.value).split())
            found[node.target.id] = text
    return found
