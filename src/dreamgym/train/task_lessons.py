"""Lessons for the jobs besides the step: how a task opens, and how it could be another task.

Records hold no pairs of a task and its variation. Where episodes came to several places, the task
that begins in another of them is a true variation in a world that memory knows; where a task is its
first state alone, a near task stands for the source and the task itself is the variation.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dreamgym.experience.prompt import Style
from dreamgym.experience.task_memory import nearest
from dreamgym.experience.task_prompt import (
    MOST_EXAMPLES,
    MOST_PLACES,
    Example,
    Job,
    Variation,
    first_state_prompt,
    first_state_text,
    one_variation_prompt,
    one_variation_text,
    variation_prompt,
    variations_text,
)
from dreamgym.types import Message, Split, Task, derive_seed


@dataclass(frozen=True, slots=True)
class TaskLesson:
    """One question about a task with its right answer."""

    job: Job
    answer: Variation
    """The right goal and first state; of a first state, the goal is part of the question."""
    source: Example
    """The task that is varied; without meaning for a first state."""
    examples: tuple[Example, ...] = ()
    keep_goal: bool = False


def task_lesson_count(steps: int, share: float) -> int:
    """Return how many of these lessons make that share beside so many lessons on steps."""
    return round(steps * share / (1 - share))


def make_task_lessons(
    tasks: Mapping[str, Example],
    *,
    others: Mapping[str, Example],
    count: int,
    seed: int,
    vary_goals: bool = False,
) -> list[TaskLesson]:
    """Return lessons on tasks in turn, as many of first states as of variations.

    Args:
        tasks: what the lessons are about, by id.
        others: where examples come from; a task is no example of itself.
        count: how many lessons.
        seed: decides order, examples and beginnings.
        vary_goals: let a variation in a known world have a goal to be found, not the given one.
    """
    order = sorted(tasks)
    random.Random(derive_seed(seed, "task lessons")).shuffle(order)
    lessons = []
    for number in range(count if order else 0):
        name, around = order[number % len(order)], number // len(order)
        rest = {other: task for other, task in others.items() if other != name}
        own = derive_seed(seed, "task lesson", number)
        # The job changes from task to task, and for one task from time to time.
        if (number % len(order) + around) % 2:
            lessons.append(_first_state(tasks[name], rest, own))
        else:
            lessons.append(_variation(tasks[name], rest, own, vary_goals=vary_goals))
    return lessons


def _first_state(task: Example, others: Mapping[str, Example], seed: int) -> TaskLesson:
    shown = random.Random(seed).randint(1, MOST_EXAMPLES)
    # Whoever asks knows the goal alone, so examples are near by their goals.
    examples = nearest(Example(task.goal, ""), others, most=shown, seed=seed)
    answer = Variation(task.goal, task.first_state)
    return TaskLesson(Job.FIRST_STATE, answer, task, examples)


def _variation(
    task: Example, others: Mapping[str, Example], seed: int, *, vary_goals: bool
) -> TaskLesson:
    rng = random.Random(seed)
    if task.places:
        places = tuple(rng.sample(task.places, min(MOST_PLACES, len(task.places))))
        source = replace(task, places=places)
        # With another goal a task may well begin where it always does.
        start = rng.choice([task.first_state, *places] if vary_goals else places)
        answer = Variation(task.goal, start)
        return TaskLesson(Job.VARIATION, answer, source, keep_goal=not vary_goals)
    near = nearest(task, others, most=rng.randint(1, MOST_EXAMPLES), seed=seed)
    if not near:
        return _first_state(task, others, seed)
    source = replace(near[-1], places=())
    return TaskLesson(Job.VARIATION, Variation(task.goal, task.first_state), source, near[:-1])


def task_question(lesson: TaskLesson, *, style: Style) -> tuple[str | tuple[Message, ...], str]:
    """Return the prompt of a lesson and the answer to it."""
    if lesson.job is Job.FIRST_STATE:
        task = Task("", "", "", Split.TRAIN, goal=lesson.answer.goal)
        prompt = first_state_prompt(task, lesson.examples, style=style)
        return prompt, first_state_text(lesson.answer.first_state, style=style)
    if style is Style.FULL:
        chat = variation_prompt([lesson.source], lesson.examples, count=1)
        return chat, variations_text([lesson.answer])
    compact = one_variation_prompt(lesson.source, lesson.examples, keep_goal=lesson.keep_goal)
    answer = one_variation_text(lesson.answer, lesson.source, keep_goal=lesson.keep_goal)
    return compact, answer
