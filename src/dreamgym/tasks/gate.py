"""The gate that a made-up task must pass before anybody practises it.

It refuses with a reason and with words that say what is wrong. Whether the task can be solved at
all is not asked here: the pool finds that out by visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dreamgym.errors import ConfigError
from dreamgym.experience.task_prompt import Variation
from dreamgym.protocols import Embedder
from dreamgym.tasks.customs import Customs, goal_in_sight, words_of
from dreamgym.tasks.vectors import TextVectors


class Reason(StrEnum):
    """Why a made-up task is refused."""

    UNREADABLE = "unreadable"
    """The model's answer was no task at all."""
    DUPLICATE = "duplicate"
    """A known task has the same goal and first state."""
    ALIKE = "alike"
    """The embedder finds a known task all but equal."""
    HELD_OUT = "held-out"
    """It equals a recorded task that is not for training."""
    LAYOUT = "layout"
    """Its first state is laid out as no real one is."""
    UNHEARD_OF = "unheard-of"
    """Too many of its words occur nowhere in the environment."""
    OUT_OF_SIGHT = "out-of-sight"
    """Its first state shows less of the goal than that of any real task."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused task's reason, and what exactly is wrong."""

    reason: Reason
    why: str


class TaskGate:
    """Checks made-up tasks.

    Args:
        customs: of the environment.
        embedder: says which tasks are alike.
        alike: the cosine from which on two tasks count as one.
        new_words: the largest share of words, and of labels, that nobody has heard of.
        held_out: texts of tasks that must not be trained on, goal and first state each.
    """

    def __init__(
        self,
        customs: Customs,
        embedder: Embedder,
        *,
        alike: float = 0.99,
        new_words: float = 0.2,
        held_out: Sequence[str] = (),
    ) -> None:
        for name, value in (("alike", alike), ("new_words", new_words)):
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"{name} is {value}; it is between 0 and 1")
        self.customs = customs
        self._alike = alike
        self._new_words = new_words
        self._held_out = tuple(held_out)
        self._vectors = TextVectors(embedder)

    def refusal(
        self, variation: Variation, known: Sequence[str], *, at_home: bool = False
    ) -> Refusal | None:
        """Return why a made-up task is refused, or None.

        Args:
            variation: the task.
            known: texts of all tasks that it must differ from, goal and first state each.
            at_home: its first state is a page on record of the task that it was made from: a real
                one, so nobody needs to ask whether there can be such a page in this environment.
        """
        refused = self._not_new(task_text(variation), known) or self._unheard_of(variation)
        if refused is None and not at_home:
            refused = self._laid_out_wrongly(variation) or self._out_of_sight(variation)
        return refused

    def _not_new(self, text: str, known: Sequence[str]) -> Refusal | None:
        for texts, reason in ((self._held_out, Reason.HELD_OUT), (known, Reason.DUPLICATE)):
            same = _plain(text)
            for other in texts:
                if _plain(other) == same:
                    return Refusal(reason, f"the same as: {other}")
        for texts, reason in ((self._held_out, Reason.HELD_OUT), (known, Reason.ALIKE)):
            nearest, other = self._nearest(text, texts)
            if nearest >= self._alike:
                return Refusal(reason, f"{nearest:.3f} alike: {other}")
        return None

    def _nearest(self, text: str, others: Sequence[str]) -> tuple[float, str]:
        if not others:
            return 0.0, ""
        rows = self._vectors.rows((text, *others))
        likeness = rows[1:] @ rows[0]
        place = int(np.argmax(likeness))
        return float(likeness[place]), others[place]

    def _laid_out_wrongly(self, variation: Variation) -> Refusal | None:
        broken = self.customs.broken_layout(variation.first_state, new_labels=self._new_words)
        return Refusal(Reason.LAYOUT, broken) if broken else None

    def _unheard_of(self, variation: Variation) -> Refusal | None:
        text = task_text(variation)
        strange = self.customs.new_words(text)
        if len(strange) <= self._new_words * len(words_of(text)):
            return None
        return Refusal(Reason.UNHEARD_OF, f"nobody has heard of {', '.join(strange)}")

    def _out_of_sight(self, variation: Variation) -> Refusal | None:
        shown = goal_in_sight(variation.goal, variation.first_state)
        if shown >= self.customs.in_sight:
            return None
        least = self.customs.in_sight
        why = f"{shown} words of the goal are in sight, at least {least} in real tasks"
        return Refusal(Reason.OUT_OF_SIGHT, why)


def task_text(variation: Variation) -> str:
    """Return goal and first state as one text, as the pool compares tasks."""
    return f"{variation.goal}\n{variation.first_state}".strip()


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
