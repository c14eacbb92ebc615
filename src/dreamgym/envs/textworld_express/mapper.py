"""From the engine's prose to abstract states: short, canonical, with all that matters for acting.

A state is up to five lines; a line with nothing to say is left out:

    kitchen                                               where
    counter: banana, cookbook; fridge: closed; stove      what is here, sorted by name
    north: closed patio door; east: corridor              the ways out
    carrying: knife, raw yellow potato                    the inventory, sorted
    > recipe: banana, dice, roast; black pepper           what the last action told, if anything new

Names are the engine's own, in its own case ("T-shirt"), so that every action can be spelt from the
state. Left out are articles, filler ("In one part of the room you see"), the report of a deed whose
effect the lines above show ("You take the coin."), and furniture that no action of the game can name.
Equal situations have equal texts. What cannot be read is kept word for word: nothing is ever lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
"""Games in which nothing can be opened: what is closed or only stands there is not shown."""

_FIXTURES = frozenset({"stove", "oven", "barbeque", "bath mat", "toilet"})

_FULL = re.compile(r"Your inventory currently has \d+ items, and is full\.")
_FILLER = re.compile(
    r"(?:In one part of the room|In another part of the room|There is|You) (?:also )?(?:you )?(?:see )?"
)
_START = re.compile(
    r"\. (?:In one part of the room you see|In another part of the room you see|There is also"
    r"|You also see) "
)
_ARTICLE = re.compile(r"(?:an?|some|the) ", re.IGNORECASE)
_SURFACE = re.compile(r"(?P<name>.+?) that has (?P<contents>.+) on it")
_CONTAINER = re.compile(r"(?P<name>.+?), that contains (?P<contents>.+)")
_OPEN = re.compile(r"(?:an )?open ", re.IGNORECASE)
_COMMA = re.compile(r", (?:and )?")
_EXIT = re.compile(
    r"To the (?P<way>North|South|East|West) you see (?:the (?P<room>[^.]+)|a closed (?P<shut>[^.]+))\. "
    r"|Through an open (?P<door>[^.]+?), to the (?P<through>North|South|East|West) you see the "
    r"(?P<beyond>[^.]+)\. "
)
_CAPACITY = re.compile(r"Inventory \(maximum capacity is (\d+) items\): ")
_GOAL_MAP = re.compile(
    r"Your task is to take the coin that is located in the (.+), and put it into the box found in "
    r"the (.+)\. A map is provided, that you may find helpful\."
)
_MATH = re.compile(r"Your task is to solve the following math problem: (.+?) ?\. \n", re.DOTALL)
_ORDERED = re.compile(r"Simon says, take these actions in order: (.+)\.")
_ROAD = re.compile(r"  The (.+) connects to the (.+)\.")

_GOALS = {
    "You are hungry! Let's cook a delicious meal. Check the cookbook in the kitchen for the recipe. "
    "Once done, enjoy your meal!": "read the cookbook in the kitchen, cook the meal and eat it",
    "Your task is to pick up objects, then place them in their usual locations in the environment.": (
        "put the objects in their usual places"
    ),
    "Your task is to search the environment and find the coin.  Once you find the coin, take it.": (
        "find the coin and take it"
    ),
    "Your first task is to solve the math problem. Then, pick up the item with the same quantity as "
    "the math problem answer, and place it in the box.": (
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


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in a room: its name, whether it is open or closed, and what it holds."""

    name: str
    state: str = ""
    """"" for plain things, "surface", "open" or "closed"."""
    contents: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the thing as states show it."""
        if not self.state:
            return self.name
        if self.state == "closed":
            return f"{self.name}: closed"
        name = f"{self.name} open" if self.state == "open" else self.name
        return f"{name}: {', '.join(self.contents) or 'empty'}"


def map_goal(description: str) -> str:
    """Return a task description in few words."""
    if found := _GOAL_MAP.fullmatch(description):
        return f"take the coin in the {found[1]} and put it in the box in the {found[2]}"
    return _GOALS.get(description, " ".join(description.split()))


def map_place(game: str, look: str, inventory: str) -> str:
    """Return the lines that say where the agent is, what is there and what it carries."""
    carried = _carried(inventory)
    page = _page(game, look)
    return f"{page}\n{carried}" if page and carried else page or carried


def map_feedback(game: str, observation: str, look: str, inventory: str) -> str:
    """Return what an answer says beyond the place itself; nothing if the place says it all."""
    if observation in (look, inventory):
        return ""
    return _feedback(game, observation)


def map_state(game: str, observation: str, look: str, inventory: str) -> str:
    """Return the abstract state of an answer of the engine."""
    place = map_place(game, look, inventory)
    told = map_feedback(game, observation, look, inventory)
    if not told:
        return place
    return f"{place}\n> {told}" if place else told


def is_refusal(observation: str) -> bool:
    """Whether these are the words of an engine that did not carry an action out."""
    return observation.strip() in REFUSALS or _FULL.match(observation) is not None


def entities(state: str) -> frozenset[str]:
    """Name the room and the things that a state shows, fillings of containers included."""
    room, *lines = state.split("\n")
    if not lines and (": " in room or room.startswith("Simon")):
        return frozenset()
    found = {room}
    for line in lines:
        if line.startswith("> "):
            continue
        for part in line.split("; "):
            name, colon, rest = part.partition(": ")
            if name in DIRECTIONS:
                found.update(word for word in rest.split(", ") if not word.endswith(" door"))
                continue
            if not name.startswith("carrying"):
                found.add(name.removesuffix(" open"))
            if colon and rest not in ("closed", "empty"):
                found.update(rest.split(", "))
    return frozenset(found)


@lru_cache(maxsize=8192)
def _page(game: str, look: str) -> str:
    if not look:
        return ""
    body, _, ways = look.partition("\n")
    room, *sentences = _START.split(body.removesuffix(". "))
    if not room.startswith("You are in the "):
        return " ".join(look.split())
    things = sorted(filter(None, (_shown(game, _thing(sentence)) for sentence in sentences)))
    lines = [room.removeprefix("You are in the ").removesuffix(".").strip()]
    if things:
        lines.append("; ".join(things))
    if exits := _exits(ways):
        lines.append(exits)
    return "\n".join(lines)


def _shown(game: str, thing: Thing) -> str:
    """Return a thing as the states of a game show it; nothing if no action can name it."""
    if game in BARE and thing.name != "box":
        plain = thing.name if not thing.state and thing.name not in _FIXTURES else ""
        return "; ".join(thing.contents) or plain
    if game in FIXED and (thing.state == "closed" or thing.name in _FIXTURES):
        return ""
    return str(thing)


@lru_cache(maxsize=4096)
def _thing(sentence: str) -> Thing:
    """Read one description, such as `an open fridge, that contains an egg, and some milk`."""
    text = sentence.removesuffix(".")
    if text.endswith(" that is closed"):
        return Thing(_bare(text.removesuffix(" that is closed")), "closed")
    opened = _OPEN.match(text)
    state = "open" if opened else "surface"
    if opened:
        text = text[opened.end() :]
    for nothing in (", that is empty", ", that has nothing on it"):
        if text.endswith(nothing):
            return Thing(_bare(text.removesuffix(nothing)), state)
    for pattern in (_SURFACE, _CONTAINER):
        if found := pattern.fullmatch(text):
            contents = sorted(_bare(part) for part in _COMMA.split(found["contents"]))
            return Thing(_bare(found["name"]), state, tuple(contents))
    return Thing(_bare(sentence.removesuffix(".")))


@lru_cache(maxsize=4096)
def _exits(ways: str) -> str:
    exits = []
    for found in _EXIT.finditer(ways):
        if found["through"]:
            exits.append(f"{found['through'].lower()}: {found['beyond']}, open {found['door']}")
        else:
            what = found["room"] or f"closed {found['shut']}"
            exits.append(f"{found['way'].lower()}: {what}")
    if _EXIT.sub("", ways).strip():
        return " ".join(ways.split())
    return "; ".join(exits)


@lru_cache(maxsize=4096)
def _carried(inventory: str) -> str:
    head, _, body = inventory.partition("\n")
    items = sorted(_bare(line.strip()) for line in body.split("\n") if line.strip())
    if not items or items == ["Your inventory is currently empty."]:
        return ""
    limit = _CAPACITY.fullmatch(head)
    most = f" (at most {limit[1]})" if limit else ""
    return f"carrying{most}: {', '.join(items)}"


@lru_cache(maxsize=4096)
def _feedback(game: str, observation: str) -> str:
    text = observation.strip()
    if text in REFUSALS:
        return REFUSALS[text]
    if _FULL.match(text):
        return "the inventory is full"
    if text.startswith(("You ", "Adding the meal")):
        return ""
    for read in (_simon, _recipe, _map):
        if told := read(text):
            return told
    if found := _MATH.match(text):
        return f"math problem: {found[1]}"
    if text.startswith("The current task is to "):
        return f"instructions: {text.removeprefix('The current task is to ').removesuffix('.')}"
    if text.startswith(("Your task", "Your first task")):
        return f"task: {map_goal(text)}"
    if game in ("cookingworld", "twc") and "\n" not in text:
        return ""
    return " ".join(text.split())


def _simon(text: str) -> str:
    if text.startswith("Simon says, '"):
        return f"Simon says: {text.removeprefix('Simon says, ').strip(chr(39) + '.')}"
    if found := _ORDERED.fullmatch(text):
        return f"Simon says: {found[1]}"
    return ""


def _recipe(text: str) -> str:
    head, mark, rest = text.partition("Ingredients:")
    if not mark or not head.startswith("Gather all"):
        return ""
    ingredients, _, directions = rest.partition("Directions:")
    steps: dict[str, list[str]] = {
        line.strip(): [] for line in ingredients.split("\n") if line.strip()
    }
    for line in filter(None, (line.strip() for line in directions.split("\n"))):
        verb, _, name = line.partition(" the ")
        if name in steps:
            steps[name].append(verb)
        elif line != "prepare meal":
            return " ".join(text.split())
    return "recipe: " + "; ".join(", ".join((name, *steps[name])) for name in sorted(steps))


def _map(text: str) -> str:
    head, _, body = text.partition("\n")
    if head != "The map reads:":
        return ""
    roads = set()
    for line in filter(str.strip, body.split("\n")):
        found = _ROAD.fullmatch(line)
        if found is None:
            return " ".join(text.split())
        for other in re.split(r", | and ", found[2]):
            roads.add(" - ".join(sorted((found[1], other))))
    return "map: " + "; ".join(sorted(roads))


def _bare(text: str) -> str:
    found = _ARTICLE.match(text)
    return text[found.end() :] if found else text
