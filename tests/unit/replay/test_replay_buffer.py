"""The public face of the experience store."""

from __future__ import annotations

from dreamgym.replay import open_store
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


def walk(
    name: str, *rooms: str, env: str = "toy/house", source: Source = Source.REAL
) -> Trajectory:
    """A trajectory that walks through rooms."""
    return Trajectory(
        id=name,
        task=Task(f"{env}@{name}", env, name, Split.TRAIN, "find the coin"),
        opening=Observation(f"You are in the {rooms[0]}."),
        steps=tuple(
            Step(Action(f"go to {room}"), StepResult(Observation(f"You are in the {room}.")))
            for room in rooms[1:]
        ),
        stop=StopReason.STEP_LIMIT,
        provenance=Provenance(source, "test", mapper="m1"),
    )


def test_what_was_added_is_found_and_read_back(tmp_path):
    path = tmp_path / "experience.sqlite"
    trajectory = walk("t1", "kitchen", "hall", "garden")
    with open_store(path) as store:
        report = store.add([trajectory, walk("t2", "cellar", "attic")])
        assert (report.trajectories, report.transitions, report.duplicates) == (2, 3, 0)
    with open_store(path) as store:
        (hit,) = store.search("You are in the hall.", "go to garden", k=1)
        assert hit.transition == list(trajectory.transitions())[1]
        assert hit.similarity > 0.999
        assert next(store.trajectories()) == trajectory
        assert store.has("t1")
        assert not store.has("t3")
