"""What may enter the store: small named rules, each with the reason it gives.

A rule looks at a trajectory or at one of its transitions and returns why it must stay out, or None.
A refused trajectory is not stored at all; a refused transition is kept in its trajectory's record
but is never found by a search. Rules that need the store's own memory (splits, mappers) live in
`buffer.py`; these need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dreamgym.types import Source, Trajectory, Transition

LONGEST_STATE = 32_768
"""A dreamed state longer than this is a model that did not stop."""

_LEFTOVERS = ("<think>", "</think>", "<|", "|>", "```")
"""Signs that a model's reply was not taken apart: such text is no state."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was kept out, the rule that did it, and why."""

    trajectory_id: str
    rule: str
    reason: str
    index: int | None = None
    """The refused step; None when the whole trajectory was refused."""


@dataclass(frozen=True, slots=True)
class TrajectoryRule:
    """A named check of a whole trajectory."""

    name: str
    check: Callable[[Trajectory], str | None]


@dataclass(frozen=True, slots=True)
class TransitionRule:
    """A named check of one step."""

    name: str
    check: Callable[[Transition], str | None]


def _failed(trajectory: Trajectory) -> str | None:
    if trajectory.error is None:
        return None
    return f"the episode broke ({trajectory.error.kind} in {trajectory.error.where})"


def _empty(trajectory: Trajectory) -> str | None:
    return None if trajectory.steps else "it has no steps"


def _unwritable(trajectory: Trajectory) -> str | None:
    try:
        for text in _texts(trajectory):
            text.encode()
    except UnicodeEncodeError as error:
        return f"a text holds half a character (lone surrogate) and cannot be stored: {error}"
    return None


def _texts(trajectory: Trajectory) -> Iterator[str]:
    task, made = trajectory.task, trajectory.provenance
    yield from (trajectory.id, task.id, task.env, task.key, task.goal)
    yield from (made.behaviour, made.engine, made.mapper, made.prompt)
    yield trajectory.opening.text
    for step in trajectory.steps:
        yield step.action.text
        yield step.result.observation.text
        yield step.reasoning or ""
        yield from step.result.observation.admissible or ()


def _empty_text(transition: Transition) -> str | None:
    for name, text in (
        ("state", transition.state),
        ("action", transition.action),
        ("next state", transition.next_state),
    ):
        if not text.strip():
            return f"its {name} is empty"
    return None


def _dream_format(transition: Transition) -> str | None:
    if transition.source is not Source.DREAM:
        return None
    for mark in _LEFTOVERS:
        if mark in transition.next_state:
            return f"its next state holds '{mark}', which a reply taken apart well does not"
    if len(transition.next_state) > LONGEST_STATE:
        return f"its next state is {len(transition.next_state)} characters long"
    return None


def _dream_consistency(transition: Transition) -> str | None:
    if transition.source is not Source.DREAM:
        return None
    if transition.refused and (transition.reward > 0.0 or transition.success):
        return "a refused action is rewarded"
    return None


TRAJECTORY_RULES: tuple[TrajectoryRule, ...] = (
    TrajectoryRule("failed-episode", _failed),
    TrajectoryRule("no-steps", _empty),
    TrajectoryRule("unwritable-text", _unwritable),
)
"""Checks of whole trajectories, in order; the first that refuses is the one reported."""

TRANSITION_RULES: tuple[TransitionRule, ...] = (
    TransitionRule("empty-text", _empty_text),
    TransitionRule("dream-format", _dream_format),
    TransitionRule("dream-consistency", _dream_consistency),
)
"""Checks of single steps, in order."""


def refuse_trajectory(
    trajectory: Trajectory, rules: Iterable[TrajectoryRule] = TRAJECTORY_RULES
) -> Refusal | None:
    """Return why the trajectory must stay out, or None."""
    for rule in rules:
        reason = rule.check(trajectory)
        if reason is not None:
            return Refusal(trajectory.id, rule.name, reason)
    return None


def refuse_transition(
    transition: Transition, rules: Iterable[TransitionRule] = TRANSITION_RULES
) -> Refusal | None:
    """Return why a search must never find the transition, or None."""
    for rule in rules:
        reason = rule.check(transition)
        if reason is not None:
            return Refusal(transition.trajectory_id, rule.name, reason, transition.index)
    return None
