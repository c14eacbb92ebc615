import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.codec import decode, encode, read_lines, write_lines
from dreamgym.errors import RecordError
from dreamgym.types import (
    Action,
    EpisodeFailure,
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
    Transition,
)

# JSON cannot carry lone surrogates; every other character must come back.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
numbers = st.floats(allow_nan=False, allow_infinity=False)
observations = st.builds(
    Observation, text=texts, admissible=st.none() | st.lists(texts, max_size=3).map(tuple)
)
tokens = st.lists(st.tuples(st.integers(0, 2**31), numbers), max_size=4).map(
    lambda pairs: SampledTokens(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
)
results = st.booleans().flatmap(
    lambda ended: st.builds(
        StepResult,
        observation=observations,
        reward=numbers,
        terminated=st.just(ended),
        truncated=st.booleans(),
        success=st.booleans() if ended else st.just(False),
        refused=st.booleans(),
    )
)
steps = st.builds(
    Step,
    action=st.builds(Action, text=texts, tokens=st.none() | tokens),
    result=results,
    reasoning=st.none() | texts,
    references=st.lists(texts, max_size=2).map(tuple),
)
tasks = st.builds(
    Task,
    id=texts,
    env=texts,
    key=texts,
    split=st.sampled_from(Split),
    goal=texts,
    source=st.sampled_from(Source),
    first_state=st.none() | texts,
    parents=st.lists(texts, max_size=2).map(tuple),
)
provenances = st.builds(
    Provenance,
    source=st.sampled_from(Source),
    behaviour=texts,
    seed=st.integers(0, 2**63 - 1),
    engine=texts,
    mapper=texts,
    prompt=texts,
)
trajectories = st.builds(
    Trajectory,
    id=texts,
    task=tasks,
    opening=observations,
    steps=st.lists(steps, max_size=4).map(tuple),
    stop=st.sampled_from(StopReason),
    provenance=provenances,
    error=st.none() | st.builds(EpisodeFailure, kind=texts, where=texts, message=texts),
)

EXAMPLE = Trajectory(
    id="e",
    task=Task(id="t", env="x", key="1", split=Split.DEV),
    opening=Observation("s0"),
    steps=(Step(Action("go"), StepResult(Observation("s1"), reward=0.1 + 0.2)),),
    stop=StopReason.STEP_LIMIT,
    provenance=Provenance(Source.REAL, "noisy", seed=2**62 + 1),
)


@given(trajectories)
def test_trajectories_come_back_exactly(trajectory):
    line = encode(trajectory)
    assert "\n" not in line
    assert decode(line, Trajectory) == trajectory


@given(trajectories)
def test_transitions_and_tasks_come_back_exactly(trajectory):
    assert decode(encode(trajectory.task), Task) == trajectory.task
    for transition in trajectory.transitions():
        assert decode(encode(transition), Transition) == transition


def test_key_order_and_space_do_not_matter():
    record = json.loads(encode(EXAMPLE))
    reordered = json.dumps(dict(sorted(record.items(), reverse=True)), indent=1)
    assert decode(reordered, Trajectory) == EXAMPLE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(colour="red"), "colour"),
        (lambda r: r["task"].update(gaol="x"), "task.gaol"),
        (lambda r: r["steps"][0]["result"].update(reward="1"), "steps.0.result.reward"),
        (lambda r: r["steps"][0]["result"].update(reward=None), "steps.0.result.reward"),
        (lambda r: r["steps"][0]["result"].update(success=True), "success without termination"),
        (lambda r: r.update(stop="bored"), "stop"),
        (lambda r: r.pop("provenance"), "provenance"),
        (lambda r: r.update(v=2), "version 2"),
        (lambda r: r.pop("v"), "version None"),
        (lambda r: r.update(kind="task"), "expected a trajectory"),
    ],
)
def test_bad_records_say_what_is_wrong(change, message):
    record = json.loads(encode(EXAMPLE))
    change(record)
    with pytest.raises(RecordError, match=message):
        decode(json.dumps(record), Trajectory)


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"v":1,"kind":"trajectory"', "\x00"])
def test_what_is_no_record_is_refused(line):
    with pytest.raises(RecordError):
        decode(line, Trajectory)


def test_not_a_number_is_refused():
    line = encode(EXAMPLE).replace("0.30000000000000004", "NaN")
    assert "NaN" in line
    with pytest.raises(RecordError):
        decode(line, Trajectory)


def test_only_records_can_be_written():
    with pytest.raises(TypeError, match="Observation is not a record"):
        encode(Observation("x"))


def test_files_name_the_bad_line(tmp_path):
    path = tmp_path / "e.jsonl"
    assert write_lines(path, [EXAMPLE, EXAMPLE]) == 2
    assert list(read_lines(path, Trajectory)) == [EXAMPLE, EXAMPLE]
    with path.open("a") as file:
        file.write("{broken\n")
    with pytest.raises(RecordError, match=r"e\.jsonl:3: not JSON"):
        list(read_lines(path, Trajectory))
