"""Who makes new tasks (M_task, DreamGym Eq. 6): the experience model, or the record alone.

A maker is asked for variations of one task at a time, so that it is known what each was made from.
What it makes is checked by `gate.py`, never here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.task_prompt import Example, Variation
from dreamgym.types import Opening, Task, derive_seed


class TaskMaker(Protocol):
    """Makes variations of tasks."""

    async def vary(
        self, source: Opening, examples: Sequence[Opening], *, count: int, seed: int
    ) -> tuple[Variation, ...]:
        """Return at most `count` new tasks made from one. Raises `LLMError`."""

    async def open_anew(
        self, variation: Variation, examples: Sequence[Opening], *, seed: int
    ) -> Variation | None:
        """Return the same task with another first state, or None where no other can be had."""


Known = Callable[[Opening], Example]
"""Returns a task as makers are shown it, with the places of its world where they are on record."""


class ModelMaker:
    """Asks the experience model, whose weights M_task shares.

    Where a task is its first state alone, because all tasks have one goal, the variation is a new
    first state; otherwise goal and first state are made together.

    Args:
        model: who is asked.
        known: returns a task as the model is shown it.
        one_goal: ask for first states only.
        temperature: how freely it invents.
    """

    def __init__(
        self,
        model: ExperienceModel,
        *,
        known: Known | None = None,
        one_goal: bool = False,
        temperature: float = 1.0,
    ) -> None:
        self._model = model
        self._known = known or plain_example
        self._one_goal = one_goal
        self._temperature = temperature

    async def vary(
        self, source: Opening, examples: Sequence[Opening], *, count: int, seed: int
    ) -> tuple[Variation, ...]:
        """Return at most `count` new tasks made from one."""
        if self._one_goal:
            shown = (source, *examples)
            seeds = [derive_seed(seed, number) for number in range(count)]
            made = [await self._opened(source.task, shown, one) for one in seeds]
            return tuple(made)
        return await self._model.vary(
            [self._known(source)],
            count=count,
            examples=[plain_example(one) for one in examples],
            temperature=self._temperature,
            seed=seed,
        )

    async def open_anew(
        self, variation: Variation, examples: Sequence[Opening], *, seed: int
    ) -> Variation | None:
        """Ask for the first state alone."""
        like = examples[0].task
        task = Task(f"{like.env}#new", like.env, "new", like.split, goal=variation.goal)
        return await self._opened(task, examples, seed)

    async def _opened(self, task: Task, examples: Sequence[Opening], seed: int) -> Variation:
        state = await self._model.first_state(
            task,
            [plain_example(one) for one in examples],
            temperature=self._temperature,
            seed=seed,
        )
        return Variation(task.goal, state)


class RecordedStarts:
    """Lets a task begin in another place that is on record of it; no model is asked.

    Goal and world stay as they are: what is on record about the task holds for its variations.
    """

    def __init__(self, known: Known) -> None:
        self._known = known

    async def vary(
        self, source: Opening, examples: Sequence[Opening], *, count: int, seed: int
    ) -> tuple[Variation, ...]:
        """Return the task with other beginnings."""
        places = self._known(source).places
        chosen = random.Random(seed).sample(places, min(count, len(places)))
        return tuple(Variation(source.task.goal, place) for place in chosen)

    async def open_anew(
        self, variation: Variation, examples: Sequence[Opening], *, seed: int
    ) -> Variation | None:
        """Return nothing: the record has what it has."""
        return None


def plain_example(opening: Opening) -> Example:
    """Return a task as it is, without the places of its world."""
    return Example(opening.task.goal, opening.observation.text)
