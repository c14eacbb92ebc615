"""Tasks, openings and groups with given outcomes, for tests of the curriculum."""

from __future__ import annotations

from dreamgym.rollout.groups import Group
from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Opening,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

ROOMS = ("attic", "cellar", "garden", "hall", "kitchen", "pantry", "study")


def real_task(number: int, split: Split = Split.TRAIN) -> Task:
    return Task(f"house#{number}", "house", str(number), split)


def opening_of(number: int) -> Opening:
    """A goal and a first state of its own for each number: the goal names the room one is in."""
    here, there = ROOMS[number % 7], ROOMS[(number + 1 + number // 7) % 7]
    task = Task(
        f"house#{number}", "house", str(number), Split.TRAIN, f"bring the cup to the {here}"
    )
    return Opening(task, Observation(f"{here}\nbox: empty\neast: {there}\ncarrying: map"))


def openings(count: int) -> dict[str, Opening]:
    return {f"house#{number}": opening_of(number) for number in range(count)}


def episode(task: Task, outcome: str, *, opening: Opening | None = None) -> Trajectory:
    """An episode of one turn: `1` a success, `0` none, `u` given up as unknown, `f` failed."""
    won, unknown = outcome == "1", outcome == "u"
    result = StepResult(
        Observation("there"), terminated=outcome in "01", success=won, truncated=unknown
    )
    known = opening or opening_of(int(task.key) if task.key.isdigit() else 0)
    return Trajectory(
        id=f"{task.id}/{outcome}",
        task=known.task if task.source is Source.REAL else task,
        opening=known.observation,
        steps=(Step(Action("go"), result, reasoning="[unknown] no" if unknown else "so"),),
        stop=StopReason.TERMINATED if outcome != "f" else StopReason.FAILED,
        provenance=Provenance(Source.DREAM, "policy"),
        error=EpisodeFailure("EnvError", "env.step", "fell over") if outcome == "f" else None,
    )


def group(task: Task, outcomes: str) -> Group:
    return Group(task, tuple(episode(task, one) for one in outcomes))
