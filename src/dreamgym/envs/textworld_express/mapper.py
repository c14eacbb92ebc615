"""From the engine's prose to abstract states: short, canonical, with all that matters for acting.

A state is up to five lines; a line with nothing to say is left out:

    kitchen                                               where
    counter: banana, cookbook; fridge: closed; stove      what is here, sorted by name
    north: closed patio door; east: corridor              the ways out
    carrying 2/5: knife, raw yellow potato                the inventory, sorted, of at most 5
    > recipe: banana, dice, roast; black pepper           what the last action told, if anything new

Names are the engine's own, in its own case ("T-shirt"), so that every action can be spelt from the
state. Left out are articles, filler ("In one part of the room you see"), the report of a deed whose
effect the lines above show ("You take the coin."), and furniture that no action of a game can name.
Equal situations have equal texts. What cannot be read is kept word for word: nothing is ever lost.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dreamgym.envs.textworld_express.parse import (
    Exit,
    parse_exits,
    parse_inventory,
    parse_map,
    parse_page,
    parse_recipe,
    parse_thing,
    split_look,
)
from dreamgym.types import digest

VERSION = "1"
"""Raise it whenever a state may come out as another text."""

MAPPER = digest(f"textworld-express mapper {VERSION}")

DIRECTIONS = ("north", "south", "east", "west")

REFUSALS = {
    "Unknown action: I'm not sure what you mean.": "unknown action",
    "That is not a command that I recognize.": "unknown action",
    "You can't move there, the door is closed.": "the door is closed",
    "That is already open.": "already open",
    "That is already closed.": "already closed",
    "You are unable to prepare the meal right now.": "cannot prepare the meal now",
    "Can only prepare meal in the -= kitchen =-.": "can only prepare the meal in the kitchen",
}
"""The engine's words for what it does not do, and ours. A full inventory is matched by pattern."""

BARE = frozenset({"coin", "mapreader"})
"""Games in which no action names furniture: only what can be taken, and the box, is shown."""

FIXED = frozenset({"arithmetic", "sorting", "peckingorder"})
"""Games in which nothing can be opened: what is closed or merely stands there is not shown."""

_FIXTURES = frozenset({"stove", "oven", "barbeque", "bath mat", "toilet"})

_FULL = re.compile(r"Your inventory currently has \d+ items, and is full\.")
_DEED = re.compile(
    r"You (?:take|put|open|close|eat|cook|fry|roast|grill|chop|slice|dice) the "
    r"|Adding the meal to your inventory\."
)
_COIN_GOAL = re.compile(
    r"Your task is to take the coin that is located in the (.+), and put it into the box found in "
    r"the (.+)\. A map is provided, that you may find helpful\."
)
_MATH = re.compile(r"Your task is to solve the following math problem: (.+?) ?\. ?\n.*", re.DOTALL)
_SIMON = re.compile(r"Simon says, (?:'(.+)'|take these actions in order: (.+))\.")
_INSTRUCTION = re.compile(r"The current task is to (.+)\.")
_QUANTITY = re.compile(r"\d+(?: |[a-z]+ of )")
COOKED = re.compile(r"(?:(?:raw|fried|roasted|grilled|chopped|sliced|diced) )+")

_GOALS = {
    "You are hungry! Let's cook a delicious meal. Check the cookbook in the kitchen for the "
    "recipe. Once done, enjoy your meal!": (
        "read the cookbook in the kitchen, cook the meal and eat it"
    ),
    "Your task is to pick up objects, then place them in their usual locations in the "
    "environment.": "put the objects in their usual places",
    "Your task is to search the environment and find the coin.  Once you find the coin, take it.": (
        "find the coin and take it"
    ),
    "Your first task is to solve the math problem. Then, pick up the item with the same quantity "
    "as the math problem answer, and place it in the box.": (
        "read the math problem, then put the item with that quantity in the box"
    ),
    "Your task is to sort objects by quantity.  First, place the object with the smallest quantity "
    "in the box.  Then, place the objects with the next smallest quantity in the box, and repeat "
    "until all objects have been placed in the box.": (
        "put the objects in the box one by one, smallest quantity first"
    ),
    "Your task is to do exactly what Simon says.": "do what Simon says",
    "Your task is to read and follow the instructions book found in the environment. Repeat this "
    "until the game is completed.": "read the instructions book and do as it says until done",
}
_SAYINGS = {
    "Simon says, you have completed the game.  You win!": "Simon says: completed",
    "The task is completed.": "instructions: completed",
    "Correct!": "correct",
    "Incorrect!": "incorrect",
}


def map_goal(description: str) -> str:
    """Return a task description in few words."""
    if found := _COIN_GOAL.fullmatch(description):
        return f"take the coin in the {found[1]} and put it in the box in the {found[2]}"
    return _GOALS.get(description, " ".join(description.split()))


@lru_cache(maxsize=8192)
def map_state(game: str, observation: str, look: str, inventory: str) -> str:
    """Return the abstract state of an answer of the engine."""
    place = map_place(game, look, inventory)
    told = map_feedback(observation, look, inventory)
    if place:
        return f"{place}\n> {told}" if told else place
    return told or "nothing to see"


def map_place(game: str, look: str, inventory: str) -> str:
    """Return the lines that say where the agent is, what is there and what it carries."""
    room, carried = _room(game, look), _carried(inventory)
    return f"{room}\n{carried}" if room and carried else room or carried


def map_feedback(observation: str, look: str, inventory: str) -> str:
    """Return what an answer tells beyond the place itself; nothing if the place says it all."""
    if observation in (look, inventory) or _DEED.match(observation):
        return ""
    told = _told(observation.strip())
    # What `examine` describes can be seen anyway.
    return "" if told == observation and _is_in_sight(told, look, inventory) else told


def is_refusal(observation: str) -> bool:
    """Whether these are the words of an engine that did not carry an action out."""
    return observation.strip() in REFUSALS or _FULL.match(observation) is not None


def entities(goal: str, state: str) -> frozenset[str]:
    """Name the rooms and things that a goal and a state mention, without numbers and cooking."""
    found = set(re.findall(r" in the (?!box)([a-z ]+?)(?= and |$)", goal))
    for line in state.split("\n"):
        if line.startswith("> "):
            continue
        if line.startswith("Simon says: "):
            deeds = line.removeprefix("Simon says: ").split(", ")
            found.update(deed.partition(" ")[2] for deed in deeds)
            continue
        for part in line.split("; "):
            found.update(_named(part))
    return frozenset(COOKED.sub("", _QUANTITY.sub("", name)) for name in found)


def _named(part: str) -> list[str]:
    """Return the names in one part of a line, such as `fridge open: egg, milk`."""
    name, colon, rest = part.partition(": ")
    if not colon:
        return [name]
    values = [] if rest in ("closed", "empty") else rest.split(", ")
    if name in DIRECTIONS:
        return [value for value in values if not value.endswith("door")]
    return values if name.startswith("carrying") else [name.removesuffix(" open"), *values]


@lru_cache(maxsize=8192)
def _room(game: str, look: str) -> str:
    parts = split_look(look)
    if parts is None:
        return " ".join(look.split())
    room, sentences, ways = parts
    things = [text for sentence in sentences for text in _shown(game, sentence)]
    things.sort()
    lines = (room, "; ".join(things), _ways(ways))
    return "\n".join([line for line in lines if line])


@lru_cache(maxsize=8192)
def _shown(game: str, sentence: str) -> tuple[str, ...]:
    """Return a thing as the states of a game show it: nothing, if no action can name it."""
    thing = parse_thing(sentence)
    if game in BARE and thing.name != "box":
        return thing.contents if thing.kind or thing.name in _FIXTURES else (thing.name,)
    if game in FIXED and (thing.kind == "closed" or thing.name in _FIXTURES):
        return ()
    if not thing.kind:
        return (thing.name,)
    if thing.kind == "closed":
        return (f"{thing.name}: closed",)
    name = f"{thing.name} open" if thing.kind == "open" else thing.name
    return (f"{name}: {', '.join(thing.contents) or 'empty'}",)


@lru_cache(maxsize=8192)
def _ways(text: str) -> str:
    exits = parse_exits(text)
    return " ".join(text.split()) if exits is None else "; ".join(map(_exit, exits))


def _exit(way: Exit) -> str:
    if not way.door:
        return f"{way.way}: {way.room}"
    if not way.room:
        return f"{way.way}: closed {way.door}"
    return f"{way.way}: {way.room}, open {way.door}"


@lru_cache(maxsize=8192)
def _carried(text: str) -> str:
    inventory = parse_inventory(text)
    if not inventory.items:
        return ""
    of = "" if inventory.limit is None else f" {len(inventory.items)}/{inventory.limit}"
    return f"carrying{of}: {', '.join(inventory.items)}"


def _is_in_sight(description: str, look: str, inventory: str) -> bool:
    """Whether a text describes one thing that the state shows."""
    page = parse_page(look)
    if page is None:
        return False
    thing = parse_thing(description)
    seen = page.things, *(other.contents for other in page.things), parse_inventory(inventory).items
    return any(thing in some or thing.name in some for some in seen)


@lru_cache(maxsize=8192)
def _told(text: str) -> str:
    """Return what a text tells, in few words; the text itself where no shorter form is known."""
    if text in REFUSALS:
        return REFUSALS[text]
    if _FULL.match(text):
        return "the inventory is full"
    if text in _SAYINGS:
        return _SAYINGS[text]
    if found := _SIMON.fullmatch(text):
        return f"Simon says: {found[1] or found[2]}"
    if found := _MATH.fullmatch(text):
        return f"math problem: {found[1]}"
    if found := _INSTRUCTION.fullmatch(text):
        return f"instructions: {found[1]}"
    if text.startswith(("Your task", "Your first task")):
        return f"task: {map_goal(text)}"
    return _recipe(text) or _map(text) or " ".join(text.split())


def _recipe(text: str) -> str:
    steps = parse_recipe(text)
    if steps is None:
        return ""
    return "recipe: " + "; ".join(", ".join((name, *steps[name])) for name in sorted(steps))


def _map(text: str) -> str:
    roads = parse_map(text)
    return "" if roads is None else "map: " + "; ".join(f"{a} - {b}" for a, b in sorted(roads))
