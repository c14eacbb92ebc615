"""Refilling the pool: ask for variations, check each, say what became of it.

Every refused variation is counted by its reason and told as an event with its text. A maker that
cannot be had, or that never says anything readable, stops nothing: it is given up, and told so.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dreamgym.errors import (
    ConfigError,
    JobNotTaught,
    LLMBudget,
    LLMDown,
    LLMError,
    ReplyFormatError,
)
from dreamgym.experience.task_prompt import Variation
from dreamgym.llm.breaker import EventSink
from dreamgym.tasks.gate import Reason, Refusal, TaskGate
from dreamgym.tasks.makers import TaskMaker
from dreamgym.tasks.pool import Entry
from dreamgym.types import Opening, Source, Split, Task, derive_seed, digest

_SHOWN = 2_000
"""Characters of an unreadable answer that its event shows."""
_REOPENED = (Reason.LAYOUT, Reason.OUT_OF_SIGHT)
"""What another first state may mend."""
_FAILED = "refill_failed"


def unheard(name: str, **details: Any) -> None:
    """Take no note."""


@dataclass(frozen=True, slots=True)
class RefillPlan:
    """When new tasks are made, and how many."""

    every: int = 5
    """Steps between refills."""
    sources: int = 4
    """Tasks of the highest value that are varied each time (m in Eq. 6)."""
    variations: int = 1
    """New tasks that are asked for, of each."""
    examples: int = 3
    """Other real tasks that the maker is shown."""
    patience: int = 3
    """Refills in a row without a single readable answer after which no more are tried."""

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        for name in ("every", "sources", "variations", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.examples < 0:
            raise ConfigError(f"examples is {self.examples}; it must be at least 0")


class Refill:
    """Makes new tasks from known ones.

    Args:
        maker: who makes them.
        gate: what they must pass.
        plan: when and how many.
        at_home: says of a made-up task whether its first state is a page on record of a parent.
        seed: of the run.
        on_event: is told what became of every variation.
    """

    def __init__(
        self,
        maker: TaskMaker,
        gate: TaskGate,
        plan: RefillPlan,
        *,
        at_home: Callable[[Task], bool] = lambda task: False,
        seed: int = 0,
        on_event: EventSink = unheard,
    ) -> None:
        self.plan = plan
        self._maker, self._gate, self._at_home = maker, gate, at_home
        self._seed, self._on_event = seed, on_event
        self._counts: Counter[str] = Counter()
        self._barren = 0

    @property
    def given_up(self) -> bool:
        """Whether the maker has said nothing readable for so long that it is asked no more."""
        return self._barren >= self.plan.patience

    def due(self, step: int) -> bool:
        """Say whether new tasks are wanted after a step."""
        return not self.given_up and (step + 1) % self.plan.every == 0

    async def make(
        self, sources: Sequence[Entry], known: Sequence[Entry], step: int
    ) -> tuple[Entry, ...]:
        """Return new tasks made from `sources` that differ from all that are known."""
        asked = [self._ask(source, self._examples(known, source, step), step) for source in sources]
        answers = await asyncio.gather(*asked)
        added: list[Entry] = []
        for source, answer in zip(sources, answers, strict=True):
            for number, variation in enumerate(answer or ()):
                seed = derive_seed(self._seed, "reopen", step, source.task.id, number)
                entry = await self._admitted(variation, source, [*known, *added], step, seed)
                added += [entry] if entry is not None else []
        self._take_stock(answers, len(added), step)
        return tuple(added)

    def _examples(self, known: Sequence[Entry], source: Entry, step: int) -> tuple[Opening, ...]:
        real = [
            one
            for one in known
            if one.opening and not one.synthetic and one.task.id != source.task.id
        ]
        rng = random.Random(derive_seed(self._seed, "examples", step, source.task.id))
        chosen = rng.sample(real, min(self.plan.examples, len(real)))
        return tuple(one.as_opening() for one in chosen)

    async def _ask(
        self, source: Entry, examples: Sequence[Opening], step: int
    ) -> tuple[Variation, ...] | None:
        """Return what the maker says; None where it says nothing that can be read."""
        seed = derive_seed(self._seed, "vary", step, source.task.id)
        try:
            return await self._maker.vary(
                source.as_opening(), examples, count=self.plan.variations, seed=seed
            )
        except (LLMBudget, LLMDown):
            raise
        except ReplyFormatError as error:
            refused = Refusal(Reason.UNREADABLE, str(error))
            self._refuse(refused, source, step, text=error.raw[:_SHOWN])
        except (LLMError, JobNotTaught) as error:
            self._counts[_FAILED] += 1
            if isinstance(error, JobNotTaught):
                self._barren = self.plan.patience  # it will not learn it by being asked again
            why = f"{type(error).__name__}: {error}"
            self._on_event("refill_failed", step=step, source=source.task.id, why=why)
        return None

    async def _admitted(
        self, variation: Variation, source: Entry, known: Sequence[Entry], step: int, seed: int
    ) -> Entry | None:
        entry, refused = self._checked(variation, source, known)
        if refused is not None and refused.reason in _REOPENED:
            other = await self._reopened(variation, source, seed)
            if other is not None:
                variation = other
                entry, refused = self._checked(variation, source, known)
        told = {"goal": variation.goal, "first_state": variation.first_state}
        if refused is not None:
            self._refuse(refused, source, step, **told)
            return None
        self._counts["added"] += 1
        self._on_event("task_added", step=step, id=entry.task.id, source=source.task.id,
                       at_home=self._at_home(entry.task), **told)  # fmt: skip
        return entry

    async def _reopened(self, variation: Variation, source: Entry, seed: int) -> Variation | None:
        """Ask once for another first state (the model's *first state* job)."""
        try:
            return await self._maker.open_anew(variation, (source.as_opening(),), seed=seed)
        except (LLMBudget, LLMDown):
            raise
        except (LLMError, JobNotTaught):
            return None

    def _checked(
        self, variation: Variation, source: Entry, known: Sequence[Entry]
    ) -> tuple[Entry, Refusal | None]:
        task = made_task(variation, source.task)
        at_home = self._at_home(task)
        kin = {task.id, *task.parents}
        # Two places may look alike in two worlds; within one world they are the same place.
        others = [
            one.text
            for one in known
            if not at_home or one.task.id in kin or kin.intersection(one.task.parents)
        ]
        refused = self._gate.refusal(variation, others, at_home=at_home)
        return Entry(task, variation.first_state), refused

    def _refuse(self, refused: Refusal, source: Entry, step: int, **told: str) -> None:
        self._counts[f"rejected_{refused.reason.replace('-', '_')}"] += 1
        details = {"reason": refused.reason.value, "why": refused.why, **told}
        self._on_event("task_rejected", step=step, source=source.task.id, **details)

    def _take_stock(
        self, answers: Sequence[tuple[Variation, ...] | None], added: int, step: int
    ) -> None:
        read = sum(len(answer) for answer in answers if answer is not None)
        self._on_event("refill", step=step, sources=len(answers), made=read, added=added)
        self._barren = 0 if any(answer is not None for answer in answers) else self._barren + 1
        if self.given_up:
            why = "the maker gave no readable answer; the events before this one say why"
            self._on_event("refill_given_up", step=step, why=why)

    def figures(self) -> dict[str, float]:
        """Return counts since the beginning, by name, of all reasons."""
        names = [f"rejected_{reason.value.replace('-', '_')}" for reason in Reason]
        return {name: float(self._counts[name]) for name in ("added", _FAILED, *names)}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        return {"counts": dict(self._counts), "barren": self._barren}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self._counts, self._barren = Counter(state["counts"]), state["barren"]


def made_task(variation: Variation, source: Task) -> Task:
    """Return the task that a variation is. Its name follows from what it is and was made from."""
    if source.split is not Split.TRAIN:
        raise ConfigError(f"{source.id} is of the {source.split} split: no task is made from it")
    name = digest("\x1f".join((source.id, variation.goal, variation.first_state)))
    return Task(
        id=f"{source.env}#dreamt-{name}",
        env=source.env,
        key=f"dreamt-{name}",
        split=Split.TRAIN,
        goal=variation.goal,
        source=Source.DREAM,
        first_state=variation.first_state,
        parents=(source.id, *source.parents),
    )
