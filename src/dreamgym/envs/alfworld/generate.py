"""Household problems by seed: a PDDL problem of any of ALFWorld's six kinds, always solvable.

A problem is made in two strokes. The *sketch* settles what a player sees first: the goal and the
receptacles of the room. The *problem* then puts objects in their places. Sketches are cheap, so
splits can be told apart by first state without making the problems.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dreamgym.envs.alfworld.rooms import (
    FURNITURE,
    HELD_OUT,
    LAMP,
    LAMP_STANDS,
    ROOMS,
    THINGS,
    TREATMENT,
)
from dreamgym.envs.alfworld.upstream import Upstream
from dreamgym.types import derive_seed

_DOMAIN_OBJECTS = ("KnifeType", "ButterKnifeType")
_DOMAIN_RECEPTACLES = ("SinkBasinType", "MicrowaveType", "FridgeType")
"""Types that ALFWorld's domain names, so every problem has to."""

_AGENT = "agent1"
_MIDDLE = "loc_bar_0"
"""Where the agent starts: away from every receptacle, as in the official games."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a room is."""

    receptacles: int
    objects: int
    """What can be picked up, the sought objects included."""


SIZES = {"small": Size(6, 6), "medium": Size(12, 16), "large": Size(22, 32)}
SMALLEST = Size(4, 2)


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is settled first: all that the first text of a game will show."""

    task_type: str
    seed: int
    room: str
    thing: str
    """The object type to be found."""
    place: str
    """The receptacle type that it goes to; empty for looking at it under a lamp."""
    receptacles: tuple[str, ...]
    """Types, sorted, one entry per receptacle."""
    goal: str

    @property
    def first_state(self) -> str:
        """What two problems share when a player could not tell them apart at the start."""
        return f"{self.goal} | {' '.join(self.receptacles)}"


Goals = dict[str, dict[str, list[str]]]
"""Room -> thing -> places: what a problem of some type may ask for."""


def draw_sketch(
    upstream: Upstream, task_type: str, seed: int, *, size: Size, goals: Goals
) -> Sketch:
    """Choose room, goal and receptacles; the same seed gives the same sketch."""
    rng = random.Random(derive_seed("alfworld sketch", task_type, seed))
    room = rng.choice(list(goals))
    thing = rng.choice(list(goals[room]))
    place = rng.choice(goals[room][thing])
    receptacles = _furnish(upstream, rng, task_type, room=room, thing=thing, place=place, size=size)
    wording = rng.choice(upstream.goals[task_type]["templates"])
    goal = wording.format(obj=thing.lower(), recep=place.lower(), toggle=LAMP.lower())
    return Sketch(task_type, seed, room, thing, place, receptacles, goal)


def possible_goals(upstream: Upstream, task_type: str, *, held_out: bool | None = None) -> Goals:
    """Return everything that a problem of a type may ask for.

    Args:
        upstream: ALFWorld, which knows what fits where.
        task_type: One of `TASK_TYPES`.
        held_out: True to seek held-out objects, False for none of them, None not to care.
    """
    need, station = TREATMENT.get(task_type, ("", ""))
    found: Goals = {}
    for room in ROOMS[task_type]:
        for thing in THINGS[room]:
            if held_out is not None and (thing in HELD_OUT) != held_out:
                continue
            if need and thing not in upstream.affords[need]:
                continue
            fits = _fitting(upstream, room, thing)
            if task_type == "look_at_obj_in_light":
                places = [""]
            else:  # It must be able to lie somewhere else at first.
                places = [place for place in fits if place != station] if len(fits) > 1 else []
            if places:
                found.setdefault(room, {})[thing] = places
    return found


def _fitting(upstream: Upstream, room: str, thing: str) -> list[str]:
    return [kind for kind in FURNITURE[room] if thing in upstream.holds.get(kind, ())]


def _furnish(
    upstream: Upstream,
    rng: random.Random,
    task_type: str,
    *,
    room: str,
    thing: str,
    place: str,
    size: Size,
) -> tuple[str, ...]:
    chosen = Counter([place] if place else [])
    if task_type in TREATMENT:
        chosen[TREATMENT[task_type][1]] += 1
    elif task_type == "look_at_obj_in_light":
        chosen[rng.choice([kind for kind in LAMP_STANDS if kind in FURNITURE[room]])] += 1
    sources = [kind for kind in _fitting(upstream, room, thing) if kind != place]
    if not any(kind in chosen for kind in sources):
        chosen[rng.choice(sources)] += 1
    spare = [kind for kind, most in FURNITURE[room].items() for _ in range(most)]
    rng.shuffle(spare)
    for kind in spare:
        if chosen.total() >= size.receptacles:
            break
        if chosen[kind] < FURNITURE[room][kind]:
            chosen[kind] += 1
    return tuple(sorted(chosen.elements()))


@dataclass(frozen=True, slots=True)
class _Thing:
    kind: str
    id: str
    place: str


def write_problem(
    upstream: Upstream, sketch: Sketch, *, size: Size, without: frozenset[str] = frozenset()
) -> str:
    """Return the PDDL problem of a sketch, with objects of the types `without` left out."""
    rng = random.Random(derive_seed("alfworld problem", sketch.task_type, sketch.seed))
    places = {
        f"{_stem(kind)}_bar_{number:02d}{_tail(kind)}": kind
        for number, kind in enumerate(sketch.receptacles)
    }
    locations = {place: f"loc_bar_{number}" for number, place in enumerate(places, start=1)}
    things = _scatter(upstream, rng, sketch, places=places, size=size, without=without)
    facts = [f"(atLocation {_AGENT} {_MIDDLE})"]
    for place, kind in places.items():
        facts.append(f"(receptacleType {place} {kind}Type)")
        facts.append(f"(receptacleAtLocation {place} {locations[place]})")
        if kind in upstream.openable:
            facts.append(f"(openable {place})")
    for thing in things:
        facts += _describe(upstream, thing, locations[thing.place])
    for kind in sorted(set(places.values())):
        fits = upstream.holds.get(kind, frozenset())
        facts += [
            f"(canContain {kind}Type {thing}Type)"
            for thing in sorted({thing.kind for thing in things})
            if thing in fits
        ]
    objects = _declare(things, places, [_MIDDLE, *locations.values()])
    goal = upstream.goals[sketch.task_type]["pddl"].replace("#", "-")
    goal = goal.format(obj=sketch.thing, recep=sketch.place, toggle=LAMP)
    lines = ["(define (problem house)", "(:domain alfred)", "(:objects", *objects, ")", "(:init"]
    return "\n".join([*lines, *facts, ")", goal])


def _scatter(
    upstream: Upstream,
    rng: random.Random,
    sketch: Sketch,
    *,
    places: dict[str, str],
    size: Size,
    without: frozenset[str],
) -> list[_Thing]:
    """Put the sought objects away from where they belong, and others anywhere they fit."""
    wanted = 2 if sketch.task_type == "pick_two_obj_and_place" else 1
    kinds = [sketch.thing] * wanted
    others = [kind for kind in THINGS[sketch.room] if kind not in without]
    others = [kind for kind in others if _rooms_for(upstream, sketch, kind, places)]
    kinds += [rng.choice(others) for _ in range(max(0, size.objects - wanted))] if others else []
    things, count = [], Counter[str]()
    for kind in kinds:
        count[kind] += 1
        place = rng.choice(_rooms_for(upstream, sketch, kind, places))
        things.append(_Thing(kind, f"{kind}_bar_{count[kind]:02d}", place))
    if sketch.task_type == "look_at_obj_in_light":
        stands = [place for place, kind in places.items() if kind in LAMP_STANDS]
        things.append(_Thing(LAMP, f"{LAMP}_bar_01", rng.choice(stands)))
    return things


def _rooms_for(upstream: Upstream, sketch: Sketch, kind: str, places: dict[str, str]) -> list[str]:
    return [
        place
        for place, receptacle in places.items()
        if kind in upstream.holds.get(receptacle, ())
        and not (kind == sketch.thing and receptacle == sketch.place)
    ]


def _describe(upstream: Upstream, thing: _Thing, location: str) -> Iterable[str]:
    yield f"(objectType {thing.id} {thing.kind}Type)"
    yield f"(inReceptacle {thing.id} {thing.place})"
    yield f"(objectAtLocation {thing.id} {location})"
    for ability in ("Cleanable", "Heatable", "Coolable", "Toggleable", "Sliceable"):
        if thing.kind in upstream.affords[ability]:
            yield f"({ability.lower()} {thing.id})"
    if thing.kind != LAMP:
        yield f"(pickupable {thing.id})"
    if thing.kind in upstream.movable_receptacles:
        yield f"(isReceptacleObject {thing.id})"


def _declare(things: list[_Thing], places: dict[str, str], locations: list[str]) -> list[str]:
    object_types = {f"{thing.kind}Type" for thing in things} | set(_DOMAIN_OBJECTS)
    receptacle_types = {f"{kind}Type" for kind in places.values()} | set(_DOMAIN_RECEPTACLES)
    return [
        f"{_AGENT} - agent",
        *(f"{name} - location" for name in locations),
        *(f"{thing.id} - object" for thing in things),
        *(f"{name} - receptacle" for name in places),
        *(f"{name} - otype" for name in sorted(object_types)),
        *(f"{name} - rtype" for name in sorted(receptacle_types)),
    ]


def _stem(kind: str) -> str:
    """ALFWorld names a basin by its sink or bathtub, with `basin` further on in the id."""
    return kind.removesuffix("Basin")


def _tail(kind: str) -> str:
    return f"_bar_{kind}" if kind.endswith("Basin") else ""
