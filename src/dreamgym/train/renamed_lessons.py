"""Lessons under other names: what a small model must copy, it should not know by heart.

One renaming goes over all of a lesson: goal, states, action, history, references and the answer. So
it stays the lesson that it was, about other things. Where a renaming would change more than names,
as where two names run into each other, another is drawn, and after a few the lesson stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from dreamgym.experience.edit import Edit, apply
from dreamgym.experience.history import Turn
from dreamgym.experience.phrases import cut, places
from dreamgym.experience.prompt import StepQuery
from dreamgym.experience.sample import Sample as Lesson
from dreamgym.protocols import Reference
from dreamgym.replay.lookup import Hit
from dreamgym.states import items
from dreamgym.train.renaming import Names, Renamer
from dreamgym.types import Transition, derive_seed

_TRIES = 4


def with_renamed_share(
    lessons: Sequence[Lesson], names: Names, share: float, *, seed: int
) -> list[Lesson]:
    """Return the lessons, that share of them under other names."""
    if share <= 0 or not names.classes:
        return list(lessons)
    found: list[Lesson] = []
    for number, lesson in enumerate(lessons):
        rng = random.Random(derive_seed(seed, "rename lesson", number))
        found.append(renamed(lesson, names, rng) if rng.random() < share else lesson)
    return found


def renamed(lesson: Lesson, names: Names, rng: random.Random) -> Lesson:
    """Return a lesson under other names, or as it was where no draw fits."""
    plain = rename(lesson, Renamer({}))
    for _ in range(_TRIES):
        drawn = names.draw(rng)
        renamer, back = Renamer(drawn), Renamer({new: old for old, new in drawn.items()})
        found = rename(lesson, renamer)
        if rename(found, back) == plain and _same_lesson(lesson, found, renamer):
            return found
    return lesson


def rename(lesson: Lesson, renamer: Renamer) -> Lesson:
    """Return a lesson with the names replaced, and nothing checked."""
    query, answer = lesson.query, lesson.answer
    return Lesson(
        StepQuery(
            renamer.text(query.goal),
            renamer.text(query.state),
            renamer.text(query.action),
            tuple(_turn(one, renamer) for one in query.history),
            references=tuple(_reference(one, renamer) for one in query.references),
            task_id=query.task_id,
            lacking=None if query.lacking is None else tuple(map(renamer.text, query.lacking)),
        ),
        replace(
            answer,
            edit=_edit(answer.edit, renamer),
            reasoning=renamer.text(answer.reasoning),
        ),
        _transition(lesson.transition, renamer),
    )


def _turn(one: Turn, renamer: Renamer) -> Turn:
    return Turn(renamer.text(one.action), tuple(map(renamer.text, one.said)), one.refused)


def _reference(one: Reference, renamer: Renamer) -> Reference:
    # How often a step was seen is not shown to a model.
    return Hit(_transition(one.transition, renamer), one.similarity, 1)


def _transition(one: Transition, renamer: Renamer) -> Transition:
    return replace(
        one,
        goal=renamer.text(one.goal),
        state=renamer.text(one.state),
        action=renamer.text(one.action),
        next_state=renamer.text(one.next_state),
        reasoning=None if one.reasoning is None else renamer.text(one.reasoning),
    )


def _edit(one: Edit, renamer: Renamer) -> Edit:
    return Edit(
        tuple(replace(op, text=renamer.text(op.text)) for op in one.ops),
        None if one.page is None else renamer.text(one.page),
        tuple(map(renamer.text, one.said)),
    )


def _same_lesson(old: Lesson, new: Lesson, renamer: Renamer) -> bool:
    """Say whether the answer still fits its state, and the action's things stand where they did."""
    after = apply(old.query.state, old.answer.edit)
    if apply(new.query.state, new.answer.edit) != renamer.text(after):
        return False
    steps = [(old.transition, new.transition)]
    steps += [
        (one.transition, other.transition)
        for one, other in zip(old.query.references, new.query.references, strict=True)
    ]
    return all(_places(one) == _places(other) for one, other in steps)


def _places(one: Transition) -> tuple[str, list[tuple[int, ...]]]:
    """Return the kind of a step's action, and the items that each of its things stands in."""
    parts, known = cut(one.action), items(one.state)
    return parts.kind, [tuple(places(known, phrase)) for phrase in parts.phrases]
