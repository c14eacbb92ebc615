"""Reads the engine's prose: a room, what is in it, the ways out, the inventory.

Pure functions from text to small values, remembered because the same sentences come again and
again. `mapper.py` writes these values as states; `rules.py` decides by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_START = re.compile(
    r"\. (?:In one part of the room you see|In another part of the room you see|There is also"
    r"|You also see) "
)
_HERE = "You are in the "
_ARTICLE = re.compile(r"(?:an?|some|the) ", re.IGNORECASE)
_OPEN = re.compile(r"(?:an )?open ", re.IGNORECASE)
_HOLDER = re.compile(r"(?P<name>.+?)(?: that has (?P<on>.+) on it|, that contains (?P<inside>.+))")
_EMPTY = (", that is empty", ", that has nothing on it")
_CLOSED = " that is closed"
_COMMA = re.compile(r", (?:and )?")
_EXIT = re.compile(
    r"To the (?P<way>North|South|East|West) you see "
    r"(?:the (?P<room>[^.]+)|a closed (?P<shut>[^.]+))\. "
    r"|Through an open (?P<door>[^.]+?), to the (?P<through>North|South|East|West) you see the "
    r"(?P<beyond>[^.]+)\. "
)
_CAPACITY = re.compile(r"Inventory \(maximum capacity is (\d+) items\): ")
_ROAD = re.compile(r"The (.+) connects to the (.+)\.")
_ROADS = re.compile(r", | and ")
_NOTHING = "  Your inventory is currently empty."


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in a room: its name, what it is, and what it holds."""

    name: str
    kind: str = ""
    """Nothing for a plain thing; `surface`, `open` or `closed` for what can hold others."""
    contents: tuple[str, ...] = ()
    """Names of what it holds, sorted."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A way out of a room."""

    way: str
    room: str
    """Where it leads; empty behind a closed door."""
    door: str = ""
    """What kind of door is in it, if any."""


@dataclass(frozen=True, slots=True)
class Page:
    """What can be seen in a room."""

    room: str
    things: tuple[Thing, ...]
    exits: tuple[Exit, ...]

    def thing(self, name: str) -> Thing | None:
        """Return the thing of that name."""
        return next((thing for thing in self.things if thing.name == name), None)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the agent carries, sorted, and how many things it can."""

    items: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def full(self) -> bool:
        """Whether nothing more can be taken."""
        return self.limit is not None and len(self.items) >= self.limit


def split_look(look: str) -> tuple[str, list[str], str] | None:
    """Cut the description of a room into its name, a sentence per thing, and the ways out."""
    body, _, ways = look.partition("\n")
    room, *sentences = _START.split(body.removesuffix(". "))
    if not room.startswith(_HERE):
        return None
    return room[len(_HERE) :].removesuffix("."), sentences, ways


@lru_cache(maxsize=8192)
def parse_page(look: str) -> Page | None:
    """Read the description of a room; None for a text that is no such description."""
    parts = split_look(look)
    exits = None if parts is None else parse_exits(parts[2])
    if parts is None or exits is None:
        return None
    return Page(parts[0], tuple(map(parse_thing, parts[1])), exits)


@lru_cache(maxsize=8192)
def parse_thing(sentence: str) -> Thing:
    """Read one description, such as `an open fridge, that contains an egg, and some milk`."""
    if sentence.endswith(_CLOSED):
        return Thing(bare(sentence.removesuffix(_CLOSED)), "closed")
    opened = _OPEN.match(sentence)
    kind = "open" if opened else "surface"
    text = sentence[opened.end() :] if opened else sentence
    for nothing in _EMPTY:
        if text.endswith(nothing):
            return Thing(bare(text.removesuffix(nothing)), kind)
    if found := _HOLDER.fullmatch(text):
        contents = _COMMA.split(found["on"] or found["inside"])
        return Thing(bare(found["name"]), kind, tuple(sorted(map(bare, contents))))
    return Thing(bare(sentence))


@lru_cache(maxsize=8192)
def parse_exits(ways: str) -> tuple[Exit, ...] | None:
    """Read the ways out; None if a part of the text says something else."""
    exits = []
    read = 0
    for found in _EXIT.finditer(ways):
        read += len(found[0])
        if found["through"]:
            exits.append(Exit(found["through"].lower(), found["beyond"], found["door"]))
        else:
            exits.append(Exit(found["way"].lower(), found["room"] or "", found["shut"] or ""))
    return tuple(exits) if read == len(ways) else None


@lru_cache(maxsize=8192)
def parse_inventory(inventory: str) -> Inventory:
    """Read the list of what is carried."""
    head, *lines = inventory.split("\n")
    limit = _CAPACITY.fullmatch(head)
    items = sorted(bare(line.strip()) for line in lines if line.strip() and line != _NOTHING)
    return Inventory(tuple(items), int(limit[1]) if limit else None)


def parse_recipe(text: str) -> dict[str, tuple[str, ...]] | None:
    """Read a cookbook: what to do, in order, with each ingredient; None for any other text."""
    head, mark, rest = text.partition("Ingredients:")
    ingredients, _, directions = rest.partition("Directions:")
    if not mark or not head.startswith("Gather all following ingredients"):
        return None
    steps: dict[str, tuple[str, ...]] = dict.fromkeys(_lines(ingredients), ())
    for line in _lines(directions):
        verb, _, name = line.partition(" the ")
        if name in steps:
            steps[name] += (verb,)
        elif line != "prepare meal":
            return None
    return steps


def parse_map(text: str) -> frozenset[tuple[str, str]] | None:
    """Read a map: every pair of rooms that are next to each other; None for any other text."""
    head, *lines = _lines(text) or [""]
    if head != "The map reads:":
        return None
    roads: set[tuple[str, str]] = set()
    for found in map(_ROAD.fullmatch, lines):
        if found is None:
            return None
        roads.update((min(found[1], room), max(found[1], room)) for room in _ROADS.split(found[2]))
    return frozenset(roads)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def bare(text: str) -> str:
    """Return a name without its article."""
    found = _ARTICLE.match(text)
    return text[found.end() :] if found else text
