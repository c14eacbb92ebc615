"""The customs of an environment, learnt from how its real tasks open: no environment is known here.

Which kinds of lines a first state has and in what order, which labels stand before a colon, which
words occur at all, and how much of a goal is in sight at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from dreamgym.states import body_of, is_carrying, lines_of
from dreamgym.types import Opening

_WORD = re.compile(r"[^\W\d_]+")
_BRACKETS = re.compile(r"\([^)]*\)")
_CARRYING, _LABELLED, _PLAIN = "carrying", "labelled", "plain"


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text; numbers are none."""
    return frozenset(_WORD.findall(text.lower()))


def kinds_of(state: str) -> tuple[str, ...]:
    """Return the kinds of a state's lines in order, runs of one kind as one."""
    kinds = [_kind(line) for line in lines_of(body_of(state))]
    return tuple(kind for kind, _ in groupby(kinds))


def _kind(line: Sequence[str]) -> str:
    if line and is_carrying(line[0]):
        return _CARRYING
    return _LABELLED if any(":" in item for item in line) else _PLAIN


def labels_of(state: str) -> frozenset[str]:
    """Return what stands before colons, such as `west`; `drawer 1 (open)` is a `drawer`."""
    every = [item for line in lines_of(body_of(state)) for item in line]
    heads = [item.partition(":")[0] for item in every if ":" in item]
    return frozenset(" ".join(_WORD.findall(_BRACKETS.sub("", head).lower())) for head in heads)


@dataclass(frozen=True, slots=True)
class Customs:
    """What holds for every real task that was looked at."""

    layouts: frozenset[tuple[str, ...]]
    labels: frozenset[str]
    words: frozenset[str]
    in_sight: int
    """Words of the goal that the first state shows, at least."""
    one_goal: bool
    """Whether all tasks have the same goal, so that a task is its first state alone."""

    def broken_layout(self, state: str, *, new_labels: float = 0.0) -> str:
        """Return in what a first state is laid out unlike real ones, or nothing.

        Args:
            state: the first state.
            new_labels: the share of its labels that may be new, as other furniture is.
        """
        kinds = kinds_of(state)
        if kinds not in self.layouts:
            return f"no real task opens with lines of the kinds {', '.join(kinds) or 'none'}"
        labels = labels_of(state)
        strange = sorted(labels - self.labels)
        if len(strange) <= new_labels * len(labels):
            return ""
        return f"no real task opens with '{strange[0]}: ...'"

    def new_words(self, text: str) -> tuple[str, ...]:
        """Return the words of a text that nobody has ever used."""
        return tuple(sorted(words_of(text) - self.words))


def learn_customs(openings: Sequence[Opening], *, heard: Iterable[str] = ()) -> Customs:
    """Return the customs of real tasks.

    Args:
        openings: how they open.
        heard: other texts of the environment whose words are known, such as recorded states.
    """
    states = [one.observation.text for one in openings]
    goals = [one.task.goal for one in openings]
    words: set[str] = set()
    for text in (*states, *goals, *heard):
        words |= words_of(text)
    shown = [goal_in_sight(goal, state) for goal, state in zip(goals, states, strict=True)]
    return Customs(
        layouts=frozenset(map(kinds_of, states)),
        labels=frozenset(label for state in states for label in labels_of(state)),
        words=frozenset(words),
        in_sight=min(shown, default=0),
        one_goal=len({" ".join(goal.lower().split()) for goal in goals}) <= 1,
    )


def goal_in_sight(goal: str, state: str) -> int:
    """Return how many words of the goal a state shows."""
    return len(words_of(goal) & words_of(state))
