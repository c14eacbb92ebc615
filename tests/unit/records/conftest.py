"""A trajectory to write down, and files to read."""

from pathlib import Path

import pytest

from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    SampledTokens,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

DATA = Path(__file__).parents[2] / "data" / "records"


@pytest.fixture
def trajectory():
    """A won episode of two steps that uses every field."""
    return Trajectory(
        id="t-1",
        task=Task("twx/coin#3", "twx/coin", "3", Split.TRAIN, "Find the coin.", parents=("p",)),
        opening=Observation("You are in the hall.", ("go north", "look")),
        steps=(
            Step(
                Action("go north", SampledTokens((5, 6), (-0.5, -0.25))),
                StepResult(Observation("You are in the attic. A coin.", ("take coin",)), 0.25),
                reasoning="The hall leads north.",
                references=("other#4",),
            ),
            Step(
                Action("take coin"),
                StepResult(Observation("Taken.", ()), 0.75, terminated=True, success=True),
            ),
        ),
        stop=StopReason.TERMINATED,
        provenance=Provenance(Source.REAL, "expert", 7, "twx 1.1", "m0", ""),
    )


@pytest.fixture
def data():
    return DATA
