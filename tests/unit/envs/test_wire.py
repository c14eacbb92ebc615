"""Frames survive any cutting; answers of engines are checked where they leave the engine."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.envs import wire
from dreamgym.errors import ConfigError, DreamGymError, EnvError, MissingDependency
from dreamgym.types import Observation, Opening, Split, StepResult, Task

observations = st.builds(
    Observation, st.text(), st.none() | st.lists(st.text(), max_size=4).map(tuple)
)
results = st.builds(
    StepResult,
    observations,
    st.floats(allow_nan=False, allow_infinity=False),
    terminated=st.just(True),
    truncated=st.booleans(),
    success=st.booleans(),
    refused=st.booleans(),
)


@given(st.lists(results, max_size=5), st.data())
def test_frames_survive_any_cutting(values: list[StepResult], data: st.DataObject) -> None:
    stream = b"".join(wire.pack(wire.pack_step(value)) for value in values)
    reader, read = wire.FrameReader(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        read += [wire.unpack_step(message) for message in reader.feed(stream[:cut])]
        stream = stream[cut:]
    assert read == values


def test_numbers_become_plain() -> None:
    packed = wire.pack_step(StepResult(Observation("x"), np.float32(0.5), np.bool_(True)))  # type: ignore[arg-type]
    assert packed == ("x", None, 0.5, True, False, False, False)
    assert [type(value) for value in packed[2:4]] == [float, bool]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (("text", 0.0, False), "gives a StepResult, the engine gave tuple"),
        (StepResult("text"), "an Observation was due, the engine gave str"),  # type: ignore[arg-type]
        (StepResult(Observation(b"text")), "text is a str, the engine gave bytes"),  # type: ignore[arg-type]
        (
            StepResult(Observation("text", ("go", 1))),
            "texts were due, the engine gave \\('go', 1\\)",
        ),  # type: ignore[arg-type]
    ],
)
def test_answers_of_the_wrong_kind_are_named(result: Any, message: str) -> None:
    with pytest.raises(EnvError, match=message):
        wire.pack_step(result)


def test_openings_are_checked() -> None:
    opening = Opening(Task("id", "env", "key", Split.TRAIN), Observation("text"))
    assert wire.check_opening(opening) == opening
    with pytest.raises(EnvError, match="a reset gives an Opening"):
        wire.check_opening(("text", {}))
    with pytest.raises(EnvError, match="a Task was due, the engine gave OwnTask"):
        wire.check_opening(replace(opening, task=OwnTask("id", "env", "key", Split.TRAIN)))
    with pytest.raises(EnvError, match="a Task was due, the engine gave str"):
        wire.check_task("task-1")


class OwnTask(Task):
    """A task that only a plugin knows."""


def test_texts_are_checked() -> None:
    assert wire.check_texts(np.array(["go", "look"])) == ("go", "look")
    assert type(wire.check_texts(np.array(["go"]))[0]) is str
    with pytest.raises(EnvError, match="texts were due"):
        wire.check_texts([b"go"])


class PluginError(MissingDependency):
    """An error that only a plugin knows."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConfigError("a"), ConfigError),
        (PluginError("a"), MissingDependency),
        (DreamGymError("a"), DreamGymError),
    ],
)
def test_errors_arrive_as_the_nearest_of_our_own(error: DreamGymError, kind: type) -> None:
    arrived = wire.unpack_error(*wire.pack_error(error))
    assert (type(arrived), str(arrived)) == (kind, "a")


def test_a_reward_that_is_no_number_never_gets_this_far() -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        StepResult(Observation("x"), math.nan)
