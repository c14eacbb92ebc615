"""How to win each game: small rules over what the episode has shown, one class per game.

The engine's own winning paths wander (Coin, TWC: another path at every call) and know only the
start. These rules explore in a fixed order, know nothing that a player could not, and go on from
wherever an episode stands. Two games take a hint from the engine's path: where an object usually
belongs (TWC) and the order of equal quantities (Sorting).

A rule only proposes; `expert.py` plays its proposals through and hands out none that does not win.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from dreamgym.envs.textworld_express.java import Answer
from dreamgym.envs.textworld_express.parse import (
    Page,
    parse_inventory,
    parse_map,
    parse_page,
    parse_recipe,
)
from dreamgym.envs.textworld_express.rooms import Rooms, plain

_DEVICES = {"fry": ("stove",), "roast": ("oven",), "grill": ("barbeque", "toaster")}
_DONE = {
    "fry": "fried",
    "roast": "roasted",
    "grill": "grilled",
    "chop": "chopped",
    "slice": "sliced",
    "dice": "diced",
}
_LARDERS = frozenset({"fridge", "cutlery drawer", "kitchen cupboard"})
_GOAL_ROOMS = re.compile(r"take the coin in the (.+) and put it in the box in the (.+)")
_SAID = re.compile(r"Simon says, (?:'(.+)'|take these actions in order: (.+))\.")
_SUM = re.compile(r"math problem: (\w+) (\d+) (?:and|by|from) (\d+)")
_ORDER = re.compile(r"The current task is to take the (.+)\.")
_PUT = re.compile(r"put (.+) in (.+)")


class Rule(Protocol):
    """Proposes actions for one episode."""

    def see(self, answer: Answer) -> None:
        """Take in what the engine says; called for the first state and after every action."""

    def propose(self, answer: Answer) -> str | None:
        """Return the next action, or nothing if at a loss."""


class CoinRule:
    """Explore, and take the coin where it lies."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._rooms = Rooms()

    def see(self, answer: Answer) -> None:
        """Remember the room."""
        self._rooms.see(_page(answer))

    def propose(self, answer: Answer) -> str | None:
        """Take the coin or look further."""
        if "take coin" in answer.valid:
            return None if parse_inventory(answer.inventory).full else "take coin"
        return self._rooms.explore(_page(answer))


class MapReaderRule:
    """Read the map, fetch the coin the shortest way, bring it to the box."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._rooms = Rooms()
        self._roads: frozenset[tuple[str, str]] = frozenset()
        found = _GOAL_ROOMS.fullmatch(goal)
        self._coin, self._box = (found[1], found[2]) if found else ("", "")

    def see(self, answer: Answer) -> None:
        """Remember the room and the map."""
        self._rooms.see(_page(answer))
        self._roads = parse_map(answer.observation) or self._roads

    def propose(self, answer: Answer) -> str | None:
        """Do the next of: read, fetch, bring."""
        here, carried = _page(answer), parse_inventory(answer.inventory)
        if "coin" in carried.items:
            return self._towards(here, self._box) or "put coin in box"
        if carried.full:
            spare = min(carried.items, key=lambda item: (item == "map", item))
            return self._towards(here, self._box) or f"put {spare} in box"
        if "take coin" in answer.valid:
            return "take coin"
        if not self._roads and "read map" in answer.valid:
            return "read map"
        return self._towards(here, self._coin) or self._rooms.explore(here)

    def _towards(self, here: Page, room: str) -> str | None:
        """Return the next action on the way to a room: by the map, else by exploring."""
        if here.room == room:
            return None
        step = _next_room(self._roads, here.room, room)
        for way in here.exits:
            if way.room and way.room == step:
                return f"move {way.way}"
        return self._rooms.go(here, lambda one: one == room) or self._rooms.explore(here)


class CookingRule:
    """Read the recipe, gather, cut and cook each ingredient, prepare the meal, eat it."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._rooms = Rooms()
        self._recipe: dict[str, tuple[str, ...]] = {}

    def see(self, answer: Answer) -> None:
        """Remember the room and the recipe."""
        self._rooms.see(_page(answer))
        self._recipe = parse_recipe(answer.observation) or self._recipe

    def propose(self, answer: Answer) -> str | None:
        """Do the next thing on the way to the meal."""
        here, rooms = _page(answer), self._rooms
        if not self._recipe:
            if "read cookbook" in answer.valid:
                return "read cookbook"
            return rooms.fetch(here, "cookbook") or rooms.search(here, first=_LARDERS)
        carried = {plain(item): item for item in parse_inventory(answer.inventory).items}
        if "meal" in carried or "meal" in rooms.places:
            return "eat meal" if "meal" in carried else rooms.fetch(here, "meal")
        undone = {
            name: [verb for verb in verbs if _DONE[verb] not in carried.get(name, "").split()]
            for name, verbs in self._recipe.items()
        }
        return (
            self._prepare(answer, undone)
            or self._gather(answer, set(carried), undone)
            or self._cook(here, undone)
            or (rooms.go(here, lambda room: room == "kitchen") if here.room != "kitchen" else None)
            or "prepare meal"
        )

    def _prepare(self, answer: Answer, undone: dict[str, list[str]]) -> str | None:
        """Cut or cook what can be cut or cooked on the spot."""
        for name, verbs in undone.items():
            for verb in verbs:
                deeds = [f"cook {name} in {device}" for device in _DEVICES.get(verb, ())]
                for deed in deeds or [f"{verb} {name}"]:
                    if deed in answer.valid:
                        return deed
        return None

    def _gather(
        self, answer: Answer, carried: set[str], undone: dict[str, list[str]]
    ) -> str | None:
        """Get the ingredients, and the knife while there is something to cut."""
        here, rooms = _page(answer), self._rooms
        cutting = any(verb not in _DEVICES for verbs in undone.values() for verb in verbs)
        wanted = {*self._recipe, *({"knife"} if cutting else ())}
        missing = sorted(wanted - carried)
        if not missing:
            return None
        if parse_inventory(answer.inventory).full:
            spare = _puts(answer, carried - wanted)
            return spare[0] if spare else rooms.go(here, lambda room: room == "kitchen")
        for name in missing:
            if f"take {name}" in answer.valid:
                return f"take {name}"
        known = [name for name in missing if name in rooms.places]
        near = [name for name in known if rooms.places[name][0] == here.room]
        if near or known:
            return rooms.fetch(here, (near or known)[0])
        return rooms.search(here, first=_LARDERS)

    def _cook(self, here: Page, undone: dict[str, list[str]]) -> str | None:
        """Go where something can be cooked that is not yet."""
        for verb in sorted({verb for verbs in undone.values() for verb in verbs}):
            places = self._rooms.places
            rooms = {places[one][0] for one in _DEVICES.get(verb, ()) if one in places}
            if step := self._rooms.go(here, rooms.__contains__) or self._rooms.explore(here):
                return step
        return None


class TwcRule:
    """Carry each object to where it usually belongs."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._rooms = Rooms()
        found = filter(None, map(_PUT.fullmatch, hint))
        self._homes = {one[1]: one[2] for one in found}

    def see(self, answer: Answer) -> None:
        """Remember the room."""
        self._rooms.see(_page(answer))

    def propose(self, answer: Answer) -> str | None:
        """Put away what is in hand, then take what is about, then walk on."""
        here, places = _page(answer), self._rooms.places
        inventory = parse_inventory(answer.inventory)
        carried = [item for item in inventory.items if item in self._homes]
        for item in carried:
            if (home := here.thing(self._homes[item])) is not None:
                return (
                    f"open {home.name}" if home.kind == "closed" else f"put {item} in {home.name}"
                )
        lost = [
            item
            for item, home in sorted(self._homes.items())
            if item not in carried and places.get(item, ("", ""))[1] != home
        ]
        if inventory.full and lost:
            spare = [item for item in inventory.items if item not in self._homes]
            puts = [
                deed for deed in answer.valid for item in spare if deed.startswith(f"put {item}")
            ]
            return puts[0] if puts else self._rooms.explore(here)
        for item in lost:
            if places.get(item, ("", ""))[0] == here.room:
                return self._rooms.fetch(here, item)
        rooms = {places[item][0] for item in lost if item in places}
        rooms |= {places[self._homes[item]][0] for item in carried if self._homes[item] in places}
        return self._rooms.go(here, rooms.__contains__) or self._rooms.search(here)


class ArithmeticRule:
    """Read the problem, work it out, put the item with that quantity in the box."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._result: int | None = None

    def see(self, answer: Answer) -> None:
        """Work the problem out when it is read."""
        if found := _SUM.search(answer.observation):
            left, right = int(found[2]), int(found[3])
            results: dict[str, Callable[[], int]] = {
                "add": lambda: left + right,
                "multiply": lambda: left * right,
                "subtract": lambda: right - left,
                "divide": lambda: left // right,
            }
            self._result = results[found[1]]() if found[1] in results else None

    def propose(self, answer: Answer) -> str | None:
        """Read, take, put."""
        wanted = (f"put {self._result} ", f"take {self._result} ")
        if self._result is None:
            wanted = ("read math problem", "take math problem")
        for start in wanted:
            for deed in answer.valid:
                if deed.startswith(start) and (
                    not start.startswith("put") or deed.endswith(" box")
                ):
                    return deed
        return None


class SortingRule:
    """Put the objects in the box, smallest first."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._order = [one[1] for one in map(_PUT.fullmatch, hint) if one and one[2] == "box"]

    def see(self, answer: Answer) -> None:
        """Nothing is to be remembered."""

    def propose(self, answer: Answer) -> str | None:
        """Take and put the smallest object that is not in the box."""
        box = _page(answer).thing("box")
        for item in self._order:
            if box is None or item not in box.contents:
                held = item in parse_inventory(answer.inventory).items
                return f"put {item} in box" if held else f"take {item}"
        return None


class SimonRule:
    """Do what Simon says."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._deeds: list[str] = []

    def see(self, answer: Answer) -> None:
        """Listen; with many instructions at once, count them off."""
        if found := _SAID.fullmatch(answer.observation):
            self._deeds = [found[1]] if found[1] else found[2].split(", ")
        elif answer.observation in ("Correct!", ""):
            self._deeds = self._deeds[1:]

    def propose(self, answer: Answer) -> str | None:
        """Repeat the instruction."""
        return self._deeds[0] if self._deeds else None


class PeckingRule:
    """Read the instructions, do what they say, read again."""

    def __init__(self, goal: str, hint: tuple[str, ...]) -> None:
        self._item = ""

    def see(self, answer: Answer) -> None:
        """An instruction holds until something is taken."""
        if found := _ORDER.fullmatch(answer.observation):
            self._item = found[1]
        elif answer.observation.startswith("You take the "):
            self._item = ""

    def propose(self, answer: Answer) -> str | None:
        """Take what is asked for, or ask."""
        return f"take {self._item}" if self._item else "read instructions book"


RULES: dict[str, Callable[[str, tuple[str, ...]], Rule]] = {
    "cookingworld": CookingRule,
    "twc": TwcRule,
    "coin": CoinRule,
    "mapreader": MapReaderRule,
    "arithmetic": ArithmeticRule,
    "sorting": SortingRule,
    "simonsays": SimonRule,
    "peckingorder": PeckingRule,
}
"""A rule per game, made from the goal and, for `HINTED` games, the engine's winning path."""

HINTED = frozenset({"twc", "sorting"})


def _page(answer: Answer) -> Page:
    return parse_page(answer.look) or Page("", (), ())


def _puts(answer: Answer, items: set[str]) -> list[str]:
    """List the ways to put one of these things down."""
    found = map(_PUT.fullmatch, answer.valid)
    return [one[0] for one in found if one and one[1] in items]


def _next_room(roads: frozenset[tuple[str, str]], start: str, end: str) -> str:
    """Return the room after `start` on a shortest way to `end`, or nothing."""
    near: dict[str, list[str]] = {}
    for one, other in sorted(roads):
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    after = {end: ""}
    queue = [end]
    for room in queue:
        for other in near.get(room, ()):
            if other not in after:
                after[other] = room
                queue.append(other)
    return after.get(start, "")
