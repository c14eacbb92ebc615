"""The table of formats, and how a record tells which one it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.records import atif, messages, native, sharegpt, trl
from dreamgym.records.dialogue import Defaults
from dreamgym.records.fields import Record
from dreamgym.types import Trajectory


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write trajectories down."""

    about: str
    claims: Callable[[Record], bool] | None = None
    """Whether a record is of this format; None where it cannot be read."""
    read: Callable[[Record, Defaults], Trajectory] | None = None
    write: Callable[[Trajectory], Iterator[dict[str, Any]]] | None = None
    """Yields JSON objects; None for a format that is no JSON (verl's parquet)."""


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "native": Format("DreamGym's own JSONL", native.claims, native.read, native.write),
        "atif": Format("ATIF v1.x documents", atif.claims, atif.read, atif.write),
        "messages": Format("OpenAI-style chat", messages.claims, messages.read, messages.write),
        "sharegpt": Format(
            "ShareGPT, AgentTraj-L, AgentInstruct", sharegpt.claims, sharegpt.read, sharegpt.write
        ),
        "trl": Format("TRL prompt/completion, a row per step; export only", write=trl.write),
        "verl": Format("verl parquet, a row per task; export only"),
    }
)
"""Every format by name; the first that claims a record has it."""

READABLE = tuple(name for name, one in FORMATS.items() if one.read is not None)


def choose_format(name: str) -> Format:
    """Return a format by name. Raises `ConfigError` with the nearest one."""
    if name not in FORMATS:
        raise ConfigError(f"unknown format '{name}'.{did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def choose_readable(name: str) -> Format:
    """Return a format that can be read. Raises `ConfigError` for one that is export only."""
    chosen = choose_format(name)
    if chosen.read is None:
        raise ConfigError(f"format '{name}' is export only; readable: {', '.join(READABLE)}")
    return chosen


def sniff(record: Record) -> str | None:
    """Return the name of the format that a record is of, by what is in it."""
    for name, one in FORMATS.items():
        if one.claims is not None and one.claims(record):
            return name
    return None
