"""From what ALFWorld shows to an abstract state: where I am, what is here, what I carry.

ALFWorld lists the places of a room once, in its first sentence, and what lies somewhere only on
arrival; a state carries both, so that it can be acted on without its past. Names stay as commands
want them (`soapbar 1`). The goal is not part of a state: it belongs to the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dreamgym.types import digest

MAPPER_VERSION = 1
"""Raised with every change of what `render` writes."""
MAPPER_DIGEST = digest(f"alfworld/{MAPPER_VERSION}")


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A place that the agent stands at."""

    name: str
    opened: bool | None
    """None for what has no door."""
    contents: tuple[str, ...] = ()
    """What can be seen in or on it; empty while closed."""


@dataclass(frozen=True, slots=True)
class View:
    """Everything that can be perceived at one moment."""

    here: tuple[Receptacle, ...]
    """Empty in the middle of the room; several where receptacles share a spot."""
    carried: tuple[str, ...]
    traits: Mapping[str, tuple[str, ...]]
    """What has become of visible objects: `hot`, `cool`, `clean`, `sliced`, `on`."""
    places: tuple[str, ...]
    feedback: str = ""
    """The engine's own words on the last action; empty at the start."""


def by_number(name: str) -> tuple[str, int]:
    """Sort key that puts `cabinet 2` before `cabinet 10`."""
    kind, _, number = name.strip().rpartition(" ")
    return (kind, int(number)) if number.isdigit() else (name, 0)


def render(view: View) -> str:
    """Write a view as an abstract state, always in the same order."""

    def listed(names: Iterable[str]) -> str:
        ordered = sorted(names, key=by_number)
        return ", ".join(named(name) for name in ordered) or "nothing"

    def named(name: str) -> str:
        traits = view.traits.get(name)
        return f"{name} ({', '.join(traits)})" if traits else name

    lines = []
    for place in sorted(view.here, key=lambda place: by_number(place.name)):
        door = {None: "", True: " open", False: " closed"}[place.opened]
        inside = "" if place.opened is False else f": {listed(place.contents)}"
        lines.append(f"at {place.name}{door}{inside}")
    lines = lines or ["at the middle of the room"]
    lines.append(f"carrying: {listed(view.carried)}")
    lines.append(f"places: {', '.join(sorted(view.places, key=by_number))}")
    if view.feedback:
        lines.append(f"> {summarise(view.feedback)}")
    return "\n".join(lines)


_SUMMARIES = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Nothing happens\.", "nothing happens"),
        (r"You arrive at (.+?)\.", r"arrived at \1"),
        (r"You open the (.+?)\.", r"opened \1"),
        (r"You close the (.+?)\.", r"closed \1"),
        (r"You pick up the (.+?) from the (.+?)\.", r"took \1 from \2"),
        (r"You move the (.+?) to the (.+?)\.", r"moved \1 to \2"),
        (r"You (heat|cool|clean) the (.+?) using the (.+?)\.", r"\1ed \2 with \3"),
        (r"You turn (on|off) the (.+?)\.", r"turned \1 \2"),
        (r"You sliced the (.+?) with the (.+?)\.", r"sliced \1 with \2"),
        (r"You are carrying: .*|You are not carrying anything\.", "checked what is carried"),
        (r"You are facing the .*|You are in the middle of a room\..*", "looked around"),
        (r"On the (.+?), you see .*", r"examined \1"),
        (r"The (.+?) is (?:closed|open)\..*", r"examined \1"),
        (r"Available commands:.*", "read the list of commands"),
    )
)
"""The engine's sentences in few words; what a sentence lists is in the state already."""


def summarise(feedback: str) -> str:
    """Say in few words what the last action did; unknown sentences stay as they are."""
    text = " ".join(feedback.split())
    for pattern, words in _SUMMARIES:
        if found := pattern.match(text):
            return found.expand(words)
    return text


_GOAL = re.compile(r"Your task is to: (.+?)\.?\s*$", re.DOTALL)


def read_goal(intro: str) -> str:
    """Return the goal from ALFWorld's first text."""
    found = _GOAL.search(intro)
    return " ".join(found[1].split()) if found else ""


def read_places(state: str) -> tuple[str, ...]:
    """Return the places that a state lists."""
    for line in state.splitlines():
        if line.startswith("places: "):
            return tuple(line.removeprefix("places: ").split(", "))
    return ()
