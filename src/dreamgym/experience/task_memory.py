"""What is on record about tasks as such: how they open, and which places lie in their worlds.

Variations are made of this, in training as in a dream. A place is shown as an agent that has just
begun would find it: as episodes first came to it, with what the task's opening says is carried.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import nlargest

from dreamgym.experience.ledger import carrying_lines
from dreamgym.experience.recall import TaskRecord
from dreamgym.experience.task_prompt import Example
from dreamgym.states import body_of, page_name
from dreamgym.types import Trajectory, Transition, derive_seed

_COMPARED = 200
"""Tasks that are looked through for near ones: enough to find some, whatever their number."""


def known_tasks(trajectories: Iterable[Trajectory]) -> dict[str, Example]:
    """Return every recorded task by its id, with the places that its episodes came to."""
    steps: dict[str, list[Transition]] = defaultdict(list)
    opening: dict[str, tuple[str, str]] = {}
    for one in trajectories:
        opening.setdefault(one.task.id, (one.task.goal, one.opening.text))
        steps[one.task.id].extend(one.transitions())
    return {
        name: known_task(goal, first_state, steps[name])
        for name, (goal, first_state) in opening.items()
    }


def known_task(goal: str, first_state: str, steps: Iterable[Transition]) -> Example:
    """Return a task with the places that recorded steps of it show."""
    body = body_of(first_state)
    pages = TaskRecord(steps).pages(body, (), task_id="")
    carrying = carrying_lines(body)
    # A place that may be open or closed is there under its own name, too.
    places = dict.fromkeys(page.seen_by(carrying) for name, page in sorted(pages.items()) if name)
    return Example(goal, body, tuple(one for one in places if page_name(one) != page_name(body)))


def nearest(
    one: Example, others: Mapping[str, Example], *, most: int, seed: int
) -> tuple[Example, ...]:
    """Return other tasks whose goals and first states share most words, the nearest one last.

    Equal ones are left out; which of equally near ones are taken depends on the seed.
    """
    different = [
        other
        for other in others.values()
        if (other.goal, other.first_state) != (one.goal, one.first_state)
    ]
    rng = random.Random(derive_seed("near", seed))
    compared = rng.sample(different, min(_COMPARED, len(different)))
    found = nlargest(most, compared, key=lambda other: _shared(one, other))
    return tuple(reversed(found))


def _shared(one: Example, other: Example) -> float:
    ours, theirs = _words(one), _words(other)
    return len(ours & theirs) / max(1, len(ours | theirs))


def _words(one: Example) -> set[str]:
    return set(f"{one.goal}\n{one.first_state}".split())
