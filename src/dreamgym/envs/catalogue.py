"""What there is to play in: every family with an example, and whether it runs on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from dreamgym.envs.registry import FAMILIES, families
from dreamgym.extras import install_command


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the catalogue."""

    spec: str
    about: str
    status: str
    """`ready`, or the command that makes it so."""


@dataclass(frozen=True, slots=True)
class _Shipped:
    examples: tuple[tuple[str, str], ...]
    module: str
    """The third-party module that must be there."""
    extra: str
    """The extra that brings it."""


_SHIPPED = {
    "twx": _Shipped(
        (
            ("twx/cookingworld", "find, prepare and eat a meal by the cookbook"),
            ("twx/twc", "put household things where they belong"),
            ("twx/coin", "search rooms for a coin"),
            ("twx/mapreader", "fetch a coin by the map and bring it to a box"),
            ("twx/arithmetic", "solve a sum, pick the matching quantity"),
            ("twx/sorting", "put quantities into a box in order"),
            ("twx/simonsays", "do exactly what Simon says"),
            ("twx/peckingorder", "follow a book of instructions"),
        ),
        "textworld_express",
        "twx",
    ),
    "textworld": _Shipped(
        (
            ("textworld/simple", "a small house with one goal"),
            ("textworld/coin_collector", "a maze with a coin at its end"),
            ("textworld/treasure_hunter", "keys, doors and a treasure"),
            ("textworld/cooking", "the First TextWorld Problems cooking games"),
        ),
        "textworld",
        "textworld",
    ),
    "alfworld": _Shipped(
        (
            ("alfworld/generated", "household problems of six kinds, made by seed"),
            ("alfworld/official?path=DIR", "a directory of the official ALFWorld games"),
        ),
        "alfworld",
        "alfworld",
    ),
    "gym": _Shipped(
        (("gym/ID?import=MODULE", "any Gymnasium environment that speaks text"),), "gymnasium", ""
    ),
    "py": _Shipped((("py/MODULE:FUNCTION", "your own engine, straight from a module"),), "", ""),
}


def catalogue() -> tuple[Listed, ...]:
    """List every family, shipped and plugged in. Imports none of them."""
    listed = []
    for family in FAMILIES:
        shipped = _SHIPPED[family]
        missing = bool(shipped.module) and find_spec(shipped.module) is None
        status = install_command(shipped.extra) if missing else "ready"
        listed += [Listed(spec, about, status) for spec, about in shipped.examples]
    plugged = sorted(families().keys() - FAMILIES.keys())
    return (*listed, *(Listed(f"{name}/...", "brought by a plugin", "ready") for name in plugged))
