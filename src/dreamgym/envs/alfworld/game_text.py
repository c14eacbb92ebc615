"""The text of one ALFWorld game, as in a file `game.tw-pddl`: domain, grammar, problem.

Also reads what a game is about from its goal, so that nothing hangs on how its folder is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_GOAL = "UNKNOWN GOAL"
"""What stands in ALFWorld's grammar until a game puts its goal there."""

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six kinds of household problem, in ALFWorld's own order."""

_GOAL_SENTENCE = re.compile(r'("rhs": "Your task is to: )([\w ,\'-]+)(\.")')
_OBJECT_TYPE = re.compile(r"\(objecttype \?(\w+) (\w+)type\)")
_RECEPTACLE_TYPE = re.compile(r"\(receptacletype \?\w+ (\w+)type\)")


@dataclass(frozen=True, slots=True)
class GameText:
    """What a game is made of."""

    domain: str
    grammar: str
    problem: str
    goal: str = ""
    """Taken out of the grammar where that is safe, so that games share one parsed grammar."""
    walkthrough: tuple[str, ...] = ()

    def with_goal(self, intro: str) -> str:
        """Put the goal into a text made from the shared grammar."""
        return intro.replace(NO_GOAL, self.goal) if self.goal else intro


def make_game_text(
    domain: str, grammar: str, problem: str, *, walkthrough: tuple[str, ...] = ()
) -> GameText:
    """Return the game, with a plainly written goal kept apart from its grammar."""
    found = _GOAL_SENTENCE.findall(grammar)
    goal = found[0][1] if len(found) == 1 and NO_GOAL not in found[0][1] else ""
    if goal:
        grammar = _GOAL_SENTENCE.sub(rf"\g<1>{NO_GOAL}\g<3>", grammar)
    return GameText(domain, grammar, problem, goal, walkthrough)


@dataclass(frozen=True, slots=True)
class Aim:
    """What a game is about, in the words of commands: `heat` an `apple` into a `fridge`."""

    task_type: str
    thing: str
    place: str = ""
    """Where it is to end; empty where it is to be looked at."""
    lamp: str = ""


def read_aim(problem: str) -> Aim | None:
    """Return what the goal of a PDDL problem asks for, or None if it is none of the six kinds."""
    goal = goal_of(problem)
    things = {kind for _, kind in _OBJECT_TYPE.findall(goal) if not kind.endswith("lamp")}
    lamps = {kind for _, kind in _OBJECT_TYPE.findall(goal) if kind.endswith("lamp")}
    places = set(_RECEPTACLE_TYPE.findall(goal))
    if len(things) != 1 or "issliced" in goal or "inreceptacleobject" in goal:
        return None
    if lamps and not places:
        return Aim("look_at_obj_in_light", min(things), lamp=min(lamps))
    if len(places) != 1:
        return None
    marks = {
        "(isclean ": "pick_clean_then_place_in_recep",
        "(ishot ": "pick_heat_then_place_in_recep",
        "(iscool ": "pick_cool_then_place_in_recep",
        "?o2": "pick_two_obj_and_place",
    }
    kinds = [kind for mark, kind in marks.items() if mark in goal]
    kind = kinds[0] if kinds else "pick_and_place_simple"
    return Aim(kind, min(things), min(places))


def goal_of(problem: str) -> str:
    """Return the goal of a PDDL problem, in lower case and with single spaces."""
    return " ".join(problem[problem.index("(:goal") :].lower().split())
