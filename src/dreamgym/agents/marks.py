"""Marks at names of places seen and of what the goal speaks of, and at actions that were tried.

Whether something stood in the text before is what small models find out badly and a rule finds out
well. The marks follow from the goal and the episode's own turns, so they are the same for real and
in a dream, and what is once written stays as it is while the episode grows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from dreamgym.states import SAID, STATUS, any_of, body_of, place_name
from dreamgym.types import Observation

SEEN = " *"
NAMED = " !"
TRIED = " ~"
LONGEST_NAME = 4
"""Words of a goal that may be one name."""
_REMEMBERED = 16_384
_BEFORE_A_NAME = r"(?:^|[:,;.]\s|\b(?:at|in|on|to|the)\s)"
"""What a whole name can follow: in `back hall` there is no `hall`."""
_AFTER_A_NAME = rf"(?=$|[:,;.]|\s[(!]|\s(?:{'|'.join(STATUS)})(?![\w-]))"
"""What can follow a whole name: in `hall closet` there is no `hall`."""
_MARKS = r"(?: [*!])+"
_AFTER_A_WORD = re.compile(rf"{_MARKS}(?!\S)")
_WORDS = r"[^:;,.()*!]+"
_MARKED_NAME = re.compile(rf"(?:^|[:;,.]\s)(?:(?:at|in|on|to|the)\s)*({_WORDS}?)({_MARKS})")
_MARKED_LABEL = re.compile(rf"(?:^|;\s)({_WORDS}): {_WORDS}?({_MARKS})(?=$|;)")


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked."""

    seen: bool = False
    """Those of places where the episode has been."""
    goal: bool = False
    """Those that the goal speaks of, with or without a number."""
    actions: bool = False
    """Actions bear the marks of the names in them."""
    tried: bool = False
    """Actions bear a mark where the episode did the same in the very same state before."""

    @property
    def at_names(self) -> bool:
        """Whether any names are marked in states."""
        return self.seen or self.goal

    @property
    def at_actions(self) -> bool:
        """Whether actions may bear marks."""
        return self.actions or self.tried


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class ActionMarks:
    """What actions bear in one state of an episode."""

    names: Mapping[str, str] = field(default_factory=dict)
    """The marks of names, wherever they stand in an action."""
    tried: frozenset[str] = frozenset()
    """Actions that were done before where the episode stands now."""

    def on(self, action: str) -> str:
        """Return an action with its marks."""
        told = action
        if self.names:
            scanner = _words(frozenset(self.names))
            told = scanner.sub(lambda found: found[0] + self.names[found[0]], action)
        return told + TRIED if action in self.tried else told


NO_ACTION_MARKS = ActionMarks()


def marked(goal: str, states: Sequence[Observation], marks: Marks) -> list[Observation]:
    """Return the states of an episode with marks at names."""
    if marks.goal:
        states = [_named(state, goal) for state in states]
    return _with_places(states) if marks.seen else list(states)


def _with_places(states: Sequence[Observation]) -> list[Observation]:
    """Return states, each with marks at the places of those before it."""
    seen: frozenset[str] = frozenset()
    told = []
    for state in states:
        told.append(_told(state, seen))
        place = place_name(state.text).removesuffix(NAMED)
        if place and place not in seen:
            seen |= {place}
    return told


@lru_cache(_REMEMBERED)
def _told(state: Observation, seen: frozenset[str]) -> Observation:
    return _scanned(state, _scanner(seen), SEEN) if seen else state


@lru_cache(_REMEMBERED)
def _named(state: Observation, goal: str) -> Observation:
    phrases = _phrases(goal)
    return _scanned(state, _scanner(phrases, after=r"(?:\s\d+)?"), NAMED) if phrases else state


@lru_cache(_REMEMBERED)
def _phrases(goal: str) -> frozenset[str]:
    """Return all that may be a name in a goal.

    Nothing tells where a name begins: `clean ladle` speaks of a ladle, `back hall` of no hall. Both
    are taken for names.
    """
    words = re.findall(r"[\w'-]+", goal)
    return frozenset(
        " ".join(words[first : first + size])
        for first in range(len(words))
        for size in range(1, LONGEST_NAME + 1)
    )


def _scanned(state: Observation, names: re.Pattern[str], mark: str) -> Observation:
    """Return a state with a mark after each name; what was said has none."""
    lines = [
        line if line.startswith(SAID) else names.sub(lambda found: found[0] + mark, line)
        for line in state.text.split("\n")
    ]
    return replace(state, text="\n".join(lines))


@lru_cache(_REMEMBERED)
def _scanner(names: frozenset[str], after: str = "") -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE_A_NAME}(?:{any_of(names)}){after}{_AFTER_A_NAME}")


def action_marks(
    goal: str, states: Sequence[Observation], actions: Sequence[str], marks: Marks
) -> ActionMarks:
    """Return what actions in the last state bear.

    The label of a single name has the marks of that name: `north`, where the state says
    `north: hall *`.

    Args:
        goal: of the task.
        states: of the episode, the current one last.
        actions: that were done in the states before it.
        marks: which are wanted.
    """
    if not (marks.at_actions and states):
        return NO_ACTION_MARKS
    named = marks.actions and marks.at_names
    names = _read_marks(marked(goal, states, marks)[-1].text) if named else {}
    return ActionMarks(names, _done_here(states, actions) if marks.tried else frozenset())


def _done_here(states: Sequence[Observation], actions: Sequence[str]) -> frozenset[str]:
    """Return what was done before in the state that is the last one."""
    here = body_of(states[-1].text)
    before = zip(states[:-1], actions, strict=True)
    return frozenset(action for state, action in before if body_of(state.text) == here)


def without_marks(action: str, marks: Marks) -> str:
    """Return an action as the environment knows it: without what such marks put there."""
    if marks.tried:
        action = action.removesuffix(TRIED)
    return _AFTER_A_WORD.sub("", action) if marks.actions else action


@lru_cache(_REMEMBERED)
def _read_marks(text: str) -> Mapping[str, str]:
    lines = [line for line in text.split("\n") if not line.startswith(SAID)]
    labels = {name: found for line in lines for name, found in _MARKED_LABEL.findall(line)}
    return labels | {name: found for line in lines for name, found in _MARKED_NAME.findall(line)}


@lru_cache(_REMEMBERED)
def _words(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)(?:{any_of(names)})(?!\S)")
