"""Recorded trajectories as questions and right answers: what an experience model learns from.

A question is made of a recorded step just as `DreamEnv` makes it while dreaming, so that a model
meets in a dream what it met in training.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.history import Turn
from dreamgym.experience.ledger import Ledger, Pages, shorten
from dreamgym.experience.prompt import StepAnswer, StepQuery, answer_of
from dreamgym.experience.recall import TaskRecord
from dreamgym.protocols import Reference
from dreamgym.states import split_said
from dreamgym.types import Trajectory, Transition

LookUp = Callable[[Transition], tuple[Reference, ...]]
"""Finds references for a step; it must leave out the step's own trajectory."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One question with its right answer."""

    query: StepQuery
    answer: StepAnswer
    transition: Transition


def samples(
    trajectory: Trajectory,
    *,
    look_up: LookUp | None = None,
    record: TaskRecord | None = None,
    goals: GoalNeeds | None = None,
    only: Collection[str] | None = None,
    name_pages: bool = True,
) -> Iterator[Sample]:
    """Yield every step of a trajectory as a sample.

    Args:
        trajectory: with reasoning on its steps, where reasoning is to be learnt.
        look_up: finds references; without it there are none.
        record: what other trajectories of the task have shown.
        goals: what goals need, for models that get hints.
        only: the ids of the steps that are wanted; without it, all are.
        name_pages: a page that ledger or references hold is answered by its name alone, as the
            dream will accept it.
    """
    ledger, known = Ledger(), record or TaskRecord(())
    ledger.show(trajectory.opening.text)
    history: tuple[Turn, ...] = ()
    for one in trajectory.transitions():
        if only is None or one.id in only:
            references = look_up(one) if look_up is not None else ()
            if any(found.transition.trajectory_id == trajectory.id for found in references):
                raise ValueError(
                    f"a reference of {one.id} is from its own trajectory: it would leak"
                )
            answer = answer_of(one)
            if name_pages:
                recalled = known.pages(one.state, references, task_id=one.task_id)
                edit = shorten(answer.edit, one.state, pages=Pages(ledger, recalled, known.told))
                answer = replace(answer, edit=edit)
            query = StepQuery(
                one.goal,
                one.state,
                one.action,
                history,
                references=references,
                task_id=one.task_id,
                lacking=goals.lacking(one.goal, one.state, one.action) if goals else None,
            )
            yield Sample(query, answer, one)
        history += (Turn(one.action, split_said(one.next_state)[1], one.refused),)
        ledger.show(one.next_state)
