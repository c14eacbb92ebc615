"""The vary job: what a dream's model makes of known tasks (M_task), for a person to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym import dreams
from dreamgym.errors import ConfigError, ReplyFormatError
from dreamgym.experience.task_memory import known_task, nearest
from dreamgym.experience.task_prompt import MOST_EXAMPLES, Example, Variation
from dreamgym.types import Split, Task, derive_seed


@dataclass(frozen=True, slots=True)
class Varied:
    """A known task and what was made of it."""

    task: Task
    source: Example
    variations: tuple[Variation, ...]
    trouble: str = ""
    """Why there is none, where no answer could be read."""

    def is_on_record(self, variation: Variation) -> bool:
        """Say whether a variation begins in a place of the source's own world."""
        return variation.first_state in (self.source.first_state, *self.source.places)


def chosen_tasks(dream: dreams.Dream, wanted: Sequence[str], *, most: int) -> tuple[Task, ...]:
    """Return the named tasks of the training split, or without names some, evenly taken."""
    tasks = dream.tasks(Split.TRAIN)
    if wanted:
        where = f"the training split of {dream.card.store}"
        return tuple(dreams.named_task(tasks, name, where=where) for name in wanted)
    if not tasks:
        raise ConfigError(f"{dream.card.store} holds no task of the training split to vary")
    count = min(most, len(tasks))
    return tuple(tasks[number * len(tasks) // count] for number in range(count))


async def vary_tasks(
    dream: dreams.Dream,
    tasks: Sequence[Task],
    *,
    count: int,
    seed: int,
    temperature: float = 1.0,
) -> tuple[Varied, ...]:
    """Ask the dream's model for variations of each task. Raises `JobNotTaught`."""
    openings = dreams.recorded_openings(dream.store, dream.card.env)
    others = {
        name: Example(one.task.goal, one.observation.text)
        for name, one in openings.items()
        if one.task.split is Split.TRAIN
    }
    found = []
    for task in tasks:
        steps = dream.memory.recall(task.id)
        source = known_task(task.goal, openings[task.id].observation.text, steps)
        own = derive_seed(seed, "vary", task.id)
        examples = nearest(source, others, most=MOST_EXAMPLES, seed=own)
        try:
            made = await dream.world.model.vary(
                [source], count=count, examples=examples, temperature=temperature, seed=own
            )
            found.append(Varied(task, source, made))
        except ReplyFormatError as error:
            found.append(Varied(task, source, (), f"{error}"))
    return tuple(found)
