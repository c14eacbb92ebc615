"""From TextWorld's words to abstract states: what is here, where it leads, what one carries.

The engine describes a room in pages of jest. The same content stands in its table of facts, so
states are written from those, always in the same words and order, cut to what the player's eyes
reach: the room, its exits and doors, things in plain sight and in open containers, the inventory.
(One thing more: `locked` is said of every door, which the engine tells on `examine` only.)
Notes that were read stay with the state; what the engine answered comes last, after `> `.

Nothing here imports TextWorld. A change of any text needs a new `MAPPER_VERSION`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dreamgym.types import digest

MAPPER_VERSION = 1
MAPPER_DIGEST = digest(f"textworld mapper {MAPPER_VERSION}")

Fact = tuple[str, tuple[str, ...]]
"""A predicate and the ids of what it is about, such as `("on", ("f_2", "s_5"))`."""

DIRECTIONS = ("north", "east", "south", "west")
READABLE = frozenset({"cookbook", "note"})
"""Things whose text is needed later on, when it is out of sight."""

_CUTS = ("chopped", "diced", "sliced")
_COOKS = ("fried", "grilled", "roasted")
_SHUT = ("closed", "locked", "open")
_PREPARED = (*_CUTS, *_COOKS, "burned", "raw")


@dataclass(frozen=True, slots=True)
class Scene:
    """What the player sees and has, in words and in a fixed order."""

    room: str
    exits: tuple[str, ...]
    things: tuple[str, ...]
    carrying: tuple[str, ...]


def read_scene(facts: Iterable[Fact], names: Mapping[str, str]) -> Scene:
    """Pick from all facts of a world what its player can see."""
    traits: dict[str, set[str]] = defaultdict(set)
    held: dict[str, dict[str, list[str]]] = {"at": {}, "on": {}, "in": {}}
    doors: dict[tuple[str, str], str] = {}
    beside: list[tuple[str, str, str]] = []
    for predicate, about in facts:
        if len(about) == 1:
            traits[about[0]].add(predicate)
        elif predicate in held:
            held[predicate].setdefault(about[1], []).append(about[0])
        elif predicate == "link":
            doors[about[0], about[2]] = about[1]
        elif predicate.endswith("_of"):
            beside.append((predicate.removesuffix("_of"), about[0], about[1]))
    room = next(place for place, here in held["at"].items() if "P" in here)

    def name(thing: str) -> str:
        return _name(names[thing], traits[thing])

    def exit_words(direction: str, place: str) -> str:
        door = doors.get((room, place))
        if door is None:
            return direction
        return f"{direction} ({_first(_SHUT, traits[door])} {names[door]})"

    def contents(place: str, thing: str) -> str:
        return _listed(sorted(map(name, held[place].get(thing, ()))))

    def thing_words(thing: str) -> str:
        lid = _first(_SHUT, traits[thing])
        if lid == "open":
            return f"{name(thing)} (open, in it: {contents('in', thing)})"
        if lid:
            return f"{name(thing)} ({lid})"
        if thing.startswith(("s_", "stove_")):
            return f"{name(thing)} (on it: {contents('on', thing)})"
        return name(thing)

    ways = {way: place for way, place, start in beside if start == room}
    return Scene(
        room=names[room],
        exits=tuple(exit_words(way, ways[way]) for way in DIRECTIONS if way in ways),
        things=tuple(sorted(thing_words(thing) for thing in held["at"][room] if thing != "P")),
        carrying=tuple(sorted(map(name, held["in"].get("I", ())))),
    )


def render_state(
    scene: Scene, *, feedback: str = "", notes: Iterable[str] = (), ending: str = ""
) -> str:
    """Write the state as the agent reads it."""
    return "\n".join(
        (
            scene.room,
            f"here: {_listed(scene.things, '; ')}",
            f"exits: {_listed(scene.exits, '; ', empty='none')}",
            f"carrying: {_listed(scene.carrying)}",
            *(f"read: {note}" for note in notes),
            *(f"> {answer}" for answer in (feedback, ending) if answer),
        )
    )


def clean_feedback(raw: str) -> str:
    """Keep of an answer what the rest of the state does not say: no room, score or status line."""
    return " ".join(_lines(raw.partition("-= ")[0]))


def read_note(raw: str) -> str:
    """Shorten a text that was read; of a recipe, keep its ingredients and directions."""
    recipe = _RECIPE.search(raw.partition("-= ")[0])
    if recipe is None:
        return clean_feedback(raw)
    ingredients, directions = (", ".join(_lines(part)) for part in recipe.groups())
    return f"recipe of {ingredients}. Directions: {directions}."


def entities_in(state: str) -> frozenset[str]:
    """Name the room and the things that a state mentions, whatever was done to them."""
    room, *lines = state.splitlines()
    named = {room}
    for line in lines:
        kind, _, words = line.partition(": ")
        if kind == "exits":
            named.update(_DOOR.findall(words))
        elif kind == "here":
            for item in words.split("; "):
                thing, _, rest = item.partition(" (")
                inside = rest.removesuffix(")").partition("it: ")[2]
                named.update((thing, *inside.split(", ")))
        elif kind == "carrying":
            named.update(words.split(", "))
    bare = (_unprepared(name) for name in named)
    return frozenset(name for name in bare if name and name != "nothing")


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not _NOISE.match(line)]


def _unprepared(name: str) -> str:
    words = name.split()
    while words and words[0] in _PREPARED:
        words = words[1:]
    return " ".join(words)


def _name(name: str, traits: set[str]) -> str:
    """Say what was done to food, as the engine does: `sliced roasted red potato`."""
    if "needs_cooking" in traits:
        cooked = "raw"
    elif "burned" in traits:
        cooked = "burned"
    else:
        cooked = _first(_COOKS, traits)
    return " ".join(word for word in (_first(_CUTS, traits), cooked, name) if word)


def _first(words: Iterable[str], traits: set[str]) -> str:
    return next((word for word in words if word in traits), "")


def _listed(words: Iterable[str], separator: str = ", ", *, empty: str = "nothing") -> str:
    return separator.join(words) or empty


_NOISE = re.compile(
    r">|\*\*\*|Your score has just gone|You scored \d|Would you like to RESTART|You are carrying"
)
_RECIPE = re.compile(r"Ingredients:\s*(.+?)\s*Directions:\s*(.+)", re.DOTALL)
_DOOR = re.compile(r"\((?:open|closed|locked) ([^)]+)\)")
