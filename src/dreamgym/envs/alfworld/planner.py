"""Plans from where the game stands, by Fast Downward on a problem cut down to what matters.

Upstream hands Fast Downward the whole house, and its blind search then takes from milliseconds to
many seconds, growing with every drawer that could be opened. A plan only needs the objects that the
goal speaks of, the receptacles they are in or go to, and somewhere to put what is in the hand.
The domain stays upstream's, and the start is the present state, so a plan also exists off the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dreamgym.envs.alfworld.game_text import goal_of
from dreamgym.envs.alfworld.libraries import borrow_library, return_library
from dreamgym.envs.alfworld.mapper import by_number
from dreamgym.envs.alfworld.simulation import Simulation
from dreamgym.envs.alfworld.translate import ground
from dreamgym.envs.alfworld.upstream import Upstream
from dreamgym.types import digest

_PREDICATES = frozenset({
    "atlocation", "receptacleatlocation", "objectatlocation", "openable", "opened", "inreceptacle",
    "objecttype", "receptacletype", "cancontain", "holds", "holdsany", "isclean", "cleanable",
    "ishot", "heatable", "iscool", "coolable", "pickupable", "toggleable", "ison", "istoggled",
    "sliceable", "issliced",
})  # fmt: skip
"""Facts that an action or a goal may ask for."""

_PLANS_KEPT = 500
"""Per house: episodes of one task come to the same states again and again."""
_IDLE = ("look", "inventory", "help", "examineReceptacle", "examineObject")
"""Actions that change nothing a goal can ask for."""
_DOMAIN_TYPES = frozenset(
    {"sinkbasintype", "microwavetype", "fridgetype", "knifetype", "butterknifetype"}
)
"""Types that the domain names, so every problem has to."""

_STATIONS = {"(isclean ": "sinkbasintype", "(ishot ": "microwavetype", "(iscool ": "fridgetype"}
_TYPES = re.compile(r"\((object|receptacle)type \?\w+ (\w+)\)")


class Planner:
    """Finds winning commands. Holds a search library of its own from the first plan on."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._library: Any = None
        self._domains: dict[str, str] = {}

    def plan(self, simulation: Simulation) -> tuple[str, ...]:
        """Return commands that win from here, or nothing if there are none."""
        if simulation.won:
            return ()
        problem, found = present_problem(simulation, _relevant(simulation)), simulation.house.plans
        key = digest(problem, size=16)
        if key not in found:
            if len(found) >= _PLANS_KEPT:
                found.clear()
            found[key] = self.solve(simulation, problem) or self.solve(
                simulation, present_problem(simulation, None)
            )
        return found[key]

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            return_library(self._upstream, self._library)
            self._library = None

    def solve(self, simulation: Simulation, problem: str) -> tuple[str, ...]:
        """Return commands that solve a PDDL problem about the simulation's house."""
        if self._library is None:
            self._library = borrow_library(self._upstream)
        domain = simulation.house.text.domain
        if domain not in self._domains:
            self._domains[domain] = _without_actions(domain, _IDLE)
        _, sas = ground(self._upstream, self._domains[domain], problem, prune=True)
        if not self._library.solve_sas(sas.encode(), False):
            return ()
        steps = (self._upstream.downward.Operator * self._library.get_last_plan_length())()
        self._library.get_last_plan(steps)
        start, infos = simulation.house.start, simulation.house.infos
        return tuple(start.plan_to_templated_actions([step.name for step in steps], infos))


def _relevant(simulation: Simulation) -> set[str]:
    """Return the ids of objects, receptacles and locations that a plan can need."""
    goal = goal_of(simulation.house.text.problem)
    wanted = {kind for what, kind in _TYPES.findall(goal) if what == "object"}
    kinds = {fact[0]: fact[1] for fact in simulation.facts("objecttype", "object", "otype")}
    held = simulation.held()
    things = {thing for thing, kind in kinds.items() if kind in wanted}.union(held)
    inside = simulation.facts("inreceptacle", "object", "receptacle")
    places = {place for thing, place in inside if thing in things}
    purposes = {kind for what, kind in _TYPES.findall(goal) if what == "receptacle"}
    purposes |= {station for mark, station in _STATIONS.items() if mark in goal}
    for purpose in sorted(purposes):
        places |= _nearest(simulation, {purpose})
    fits = simulation.facts("cancontain", "rtype", "otype")
    for thing in held:
        places |= _nearest(simulation, {place for place, kind in fits if kind == kinds[thing]})
    stands = simulation.house.stands
    types = simulation.facts("receptacletype", "receptacle", "rtype")
    types += simulation.facts("objecttype", "object", "otype")
    named = {kind for key, kind in types if key in places | things} | wanted | purposes
    here = {simulation.location()}
    return things | places | named | _DOMAIN_TYPES | here | {stands[place] for place in places}


def _nearest(simulation: Simulation, kinds: set[str]) -> set[str]:
    """Return the receptacle of these kinds that costs the fewest actions; a set of one or none."""
    stands, now, closed = simulation.house.stands, simulation.location(), simulation.closed()

    def cost(place: str) -> tuple[int, tuple[str, int]]:
        return (stands[place] != now) + (place in closed), by_number(simulation.house.name(place))

    types = simulation.facts("receptacletype", "receptacle", "rtype")
    found = [place for place, kind in types if kind in kinds and place in stands]
    return set(sorted(found, key=cost)[:1])


def present_problem(simulation: Simulation, kept: set[str] | None) -> str:
    """Write the present state as a PDDL problem, of everything or of what is kept."""
    kinds: dict[str, str] = simulation.house.start.name2type
    names = [
        name for name, kind in kinds.items() if kept is None or kind == "agent" or name in kept
    ]
    known = set(names)
    facts = sorted(
        f"({fact.name} {' '.join(fact.names)})"
        for fact in simulation.all_facts()
        if fact.name in _PREDICATES and known.issuperset(fact.names)
    )
    problem = simulation.house.text.problem
    return _write(names, kinds, facts, goal=problem[problem.index("(:goal") :])


def _write(names: Iterable[str], kinds: dict[str, str], facts: list[str], *, goal: str) -> str:
    objects = [f"{name} - {kinds[name]}" for name in sorted(names)]
    head = ["(define (problem present)", "(:domain alfred)", "(:objects", *objects, ")"]
    return "\n".join([*head, "(:init", *facts, ")", goal])


def _without_actions(domain: str, names: Iterable[str]) -> str:
    """Return a PDDL domain without some of its actions, and without comments."""
    text = re.sub(r";.*", "", domain)
    for name in names:
        found = re.search(rf"\(:action\s+{name}\s", text, re.IGNORECASE)
        if found:
            text = text[: found.start()] + text[_closing(text, found.start()) + 1 :]
    return text


def _closing(text: str, opening: int) -> int:
    """Return where the parenthesis at `opening` is closed."""
    depth = 0
    for place in re.finditer(r"[()]", text[opening:]):
        depth += 1 if place[0] == "(" else -1
        if depth == 0:
            return opening + place.start()
    raise ValueError("a parenthesis of the PDDL domain is never closed")
