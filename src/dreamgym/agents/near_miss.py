"""Actions that look right and are not: what a probing policy tries to put refusals on record.

A dream that has only seen actions succeed believes every action. These are the hard negatives, made
from the words of the episode itself, so the module knows no environment: the right verb with the
wrong object, a step of the plan that is not due yet, an exit that is not there, a torn command.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

PREPOSITIONS = frozenset({"in", "into", "on", "onto", "from", "to", "with", "at", "of"})
COMPASS = ("north", "south", "east", "west")

Parts = tuple[str, ...]
"""An action cut up: verb, object, preposition, object, ..."""


def split_action(action: str) -> Parts:
    """Cut an action into its verb and, alternating, object phrases and prepositions."""
    words = action.split()
    if not words:
        return ()
    parts, phrase = [words[0]], list[str]()
    for word in words[1:]:
        if word in PREPOSITIONS:
            parts += [" ".join(phrase), word]
            phrase = []
        else:
            phrase.append(word)
    if phrase or len(parts) > 1:
        parts.append(" ".join(phrase))
    return tuple(parts)


def objects_of(actions: Iterable[str]) -> tuple[str, ...]:
    """Return the object phrases of actions, sorted, each once."""
    found = {phrase for action in actions for phrase in split_action(action)[1::2] if phrase}
    return tuple(sorted(found))


def near_miss(
    rng: random.Random,
    *,
    admissible: Sequence[str],
    known: Sequence[str],
    plan: Sequence[str],
) -> str | None:
    """Return an action near the sensible one that is not admissible, or None if none was found.

    Args:
        rng: Where the choices come from.
        admissible: What the environment accepts now.
        known: Actions met so far in this episode, or ahead in the plan.
        plan: Actions that win from here, the next one first; may be empty.
    """
    accepted = set(admissible)
    makers = [_not_due, _wrong_object, _wrong_object, _wrong_exit, _torn]
    rng.shuffle(makers)
    sensible = plan[0] if plan and rng.random() < 0.7 else rng.choice(list(admissible) or ["look"])
    for make in makers:
        action = make(rng, sensible, sorted(accepted.union(known, plan)))
        if action and action not in accepted:
            return action
    return None


def _not_due(rng: random.Random, sensible: str, known: Sequence[str]) -> str | None:
    """Something that was, or will be, possible; preferably with the same verb."""
    verb = sensible.split()[0]
    alike = [action for action in known if action.split()[:1] == [verb] and action != sensible]
    return rng.choice(alike or list(known)) if known else None


def _wrong_object(rng: random.Random, sensible: str, known: Sequence[str]) -> str | None:
    """The right verb with another object of this world."""
    parts = list(split_action(sensible))
    places = [index for index in range(1, len(parts), 2) if parts[index]]
    others = objects_of(known)
    if not places or not others:
        return None
    parts[rng.choice(places)] = rng.choice(others)
    return " ".join(parts)


def _wrong_exit(rng: random.Random, sensible: str, known: Sequence[str]) -> str | None:
    """A direction that is not among the ways out of here."""
    steps = [action for action in known if action.split()[-1:] and action.split()[-1] in COMPASS]
    if not steps:
        return None
    words = rng.choice(steps).split()
    return " ".join([*words[:-1], rng.choice(COMPASS)])


def _torn(rng: random.Random, sensible: str, known: Sequence[str]) -> str | None:
    """A command cut off, doubled or with words in the wrong order."""
    words = sensible.split()
    kind = rng.randrange(3)
    if kind == 0 and len(words) > 1:
        return " ".join(words[:-1])
    if kind == 1:
        return " ".join(words + words[-1:])
    rng.shuffle(words)
    return " ".join(words)
