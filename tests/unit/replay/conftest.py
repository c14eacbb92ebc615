"""Builders of small trajectories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

Walk = Callable[..., Trajectory]


@pytest.fixture(scope="session")
def walk() -> Walk:
    """Return a builder of trajectories that walk through rooms."""

    def make(
        name: str,
        *rooms: str,
        env: str = "toy/house",
        source: Source = Source.REAL,
        split: Split = Split.TRAIN,
        goal: str = "find the coin",
        mapper: str = "m1",
    ) -> Trajectory:
        return Trajectory(
            id=name,
            task=Task(f"{env}@{name}", env, name, split, goal),
            opening=Observation(f"You are in the {rooms[0]}."),
            steps=tuple(
                Step(Action(f"go to {room}"), StepResult(Observation(f"You are in the {room}.")))
                for room in rooms[1:]
            ),
            stop=StopReason.STEP_LIMIT,
            provenance=Provenance(source, "test", mapper=mapper),
        )

    return make
