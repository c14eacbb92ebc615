"""Out and in again: nothing is lost, whatever the texts look like."""

import gzip
import json
from dataclasses import replace

import pytest
from any_trajectory import texts, trajectories
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym.errors import ConfigError, MissingDependency, RecordError
from dreamgym.records import READABLE, BadRecord, detect, export_records, read_records
from dreamgym.records.dialogue import join_thought, split_thought
from dreamgym.records.formats import FORMATS
from dreamgym.types import Action, StopReason, Trajectory

CHATS = ("messages", "sharegpt", "atif")


def rows(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("name", READABLE)
@settings(deadline=None)
@given(some=st.lists(trajectories(), min_size=1, max_size=2))
def test_every_readable_format_gives_back_what_it_was_given(tmp_path_factory, name, some):
    path = tmp_path_factory.mktemp("trip") / "x.jsonl"
    assert export_records(some, path, format=name) == len(some)
    assert list(read_records(path)) == some
    assert list(read_records(path, format=name, env="other")) == some
    assert detect(path) == name


@settings(deadline=None)
@given(trajectory=trajectories())
def test_every_atif_document_is_valid(trajectory):
    atif = pytest.importorskip("atif")
    (document,) = FORMATS["atif"].write(trajectory)
    atif.Trajectory.model_validate(document)


@pytest.mark.parametrize("name", CHATS)
def test_plain_texts_are_not_written_twice(tmp_path, trajectory, name):
    export_records([trajectory], tmp_path / "x.jsonl", format=name)
    text = (tmp_path / "x.jsonl").read_text()
    assert text.count("You are in the attic. A coin.") == 1
    assert text.count("The hall leads north.") == 1


@pytest.mark.parametrize("name", CHATS)
def test_without_our_key_the_conversation_still_tells_the_story(tmp_path, trajectory, name):
    (record,) = FORMATS[name].write(trajectory)
    (record if name != "atif" else record["extra"]).pop("dreamgym")
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    (read,) = read_records(tmp_path / "x.jsonl")
    assert isinstance(read, Trajectory)
    assert read.task.goal == trajectory.task.goal
    assert read.task.env == trajectory.task.env
    assert (read.success, read.total_reward) == (True, 1.0)
    assert read.stop is StopReason.TERMINATED
    assert [step.action.text for step in read.steps] == ["go north", "take coin"]
    assert read.steps[0].reasoning == "The hall leads north."
    assert read.provenance.behaviour == f"imported:{name}"


def test_a_changed_conversation_is_another_trajectory(tmp_path, trajectory):
    (record,) = FORMATS["messages"].write(trajectory)
    record["messages"][1]["content"] = "go south"
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    (read,) = read_records(tmp_path / "x.jsonl")
    assert read.steps[0].action.text == "go south"
    assert read.steps[1:] == trajectory.steps[1:]
    assert read.id != trajectory.id
    assert read.provenance.behaviour == "imported:messages"


def test_a_shortened_conversation_is_a_bad_record(tmp_path, trajectory):
    (record,) = FORMATS["messages"].write(trajectory)
    del record["messages"][-2:]
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    (bad,) = read_records(tmp_path / "x.jsonl")
    assert isinstance(bad, BadRecord)
    assert "keeps 2 steps" in bad.reason


def test_a_failed_episode_claims_no_outcome(trajectory):
    from dreamgym.types import EpisodeFailure

    failed = replace(
        trajectory, stop=StopReason.FAILED, error=EpisodeFailure("EnvCrash", "env.step", "gone")
    )
    for name in ("messages", "sharegpt"):
        (record,) = FORMATS[name].write(failed)
        assert "reward" not in record
        assert "success" not in record
    (record,) = FORMATS["atif"].write(failed)
    assert "reward" not in record["final_metrics"]["extra"]


def test_atif_rewards_stand_where_the_format_allows_them(trajectory):
    (document,) = FORMATS["atif"].write(trajectory)
    assert [step.get("extra") for step in document["steps"]] == [
        None,
        {"reward": 0.25},
        {"reward": 0.75, "terminated": True, "success": True},
    ]
    assert document["final_metrics"]["extra"]["reward"] == 1.0
    assert document["steps"][1]["metrics"]["completion_token_ids"] == [5, 6]


@settings(deadline=None)
@given(reasoning=texts.map(str.strip), action=texts.map(str.strip))
def test_thought_and_action_part_again(reasoning, action):
    if not any(word in (reasoning + action).lower() for word in ("act", "thought", "<think>")):
        assert split_thought(join_thought(reasoning, action)) == (reasoning or None, action)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Thought:\nA.\n\nAction:\nb", ("A.", "b")),
        ("THOUGHT: A. ACTION: b", ("A.", "b")),
        ("Think: A.\n\nAct: answer(1)", ("A.", "answer(1)")),
        ("Thought: I take action: now.\nAction: go", ("I take action: now.", "go")),
        ("<think>\nA.\n</think>\n\nb", ("A.", "b")),
        ("<think>A</think>Action: b", ("A", "b")),
        ("Action: b", (None, "b")),
        ("just b", (None, "just b")),
        ("Thought: only this", (None, "Thought: only this")),
        ("Thought: A.\nAction:", ("A.", "")),
    ],
)
def test_spellings_of_thought_and_action(text, parts):
    assert split_thought(text) == parts


def test_trl_has_a_row_per_step_with_all_that_came_before(tmp_path, trajectory):
    path = tmp_path / "x.jsonl"
    assert export_records([trajectory], path, format="trl") == 2
    first, second = rows(path)
    opening = {"role": "user", "content": "Find the coin.\n\nYou are in the hall."}
    assert first == {
        "prompt": [opening],
        "completion": [{"role": "assistant", "content": "go north"}],
    }
    assert second["prompt"] == [
        opening,
        {"role": "assistant", "content": "go north"},
        {"role": "user", "content": "You are in the attic. A coin."},
    ]
    assert second["completion"] == [{"role": "assistant", "content": "take coin"}]


def test_verl_has_a_row_per_task(tmp_path, trajectory):
    parquet = pytest.importorskip("pyarrow.parquet")
    other = replace(trajectory, task=replace(trajectory.task, id="twx/coin#4", goal=""))
    path = tmp_path / "x.parquet"
    assert export_records([trajectory, trajectory, other], path, format="verl") == 2
    first, second = parquet.read_table(path).to_pylist()
    assert first == {
        "data_source": "twx/coin",
        "agent_name": "dreamgym",
        "prompt": [{"role": "user", "content": "Find the coin.\n\nYou are in the hall."}],
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": "twx/coin#3"},
        "extra_info": {"index": 0, "split": "train", "task_id": "twx/coin#3", "key": "3",
                       "goal": "Find the coin."},
    }  # fmt: skip
    assert second["extra_info"]["index"] == 1


def test_without_pyarrow_the_fix_is_named(tmp_path, trajectory, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pip install .*\[parquet\]"):
        export_records([trajectory], tmp_path / "x.parquet", format="verl")
    assert list(tmp_path.iterdir()) == []


def test_a_name_ending_in_json_means_a_list_and_gz_means_compressed(tmp_path, trajectory):
    export_records([trajectory, trajectory], tmp_path / "x.json", format="sharegpt")
    assert len(json.loads((tmp_path / "x.json").read_text())) == 2
    for name in ("x.json.gz", "x.jsonl.gz"):
        export_records([trajectory], tmp_path / name, format="messages")
        assert list(read_records(tmp_path / name)) == [trajectory]
    same = tmp_path / "y.jsonl.gz"
    export_records([trajectory], same, format="messages")
    assert gzip.decompress(same.read_bytes()).count(b"\n") == 1
    assert same.read_bytes() == (tmp_path / "x.jsonl.gz").read_bytes()


def test_an_atif_document_holds_one_trajectory(tmp_path, trajectory):
    export_records([trajectory], tmp_path / "x.json", format="atif")
    assert json.loads((tmp_path / "x.json").read_text())["schema_version"] == "ATIF-v1.8"
    with pytest.raises(RecordError, match=r"name it \.jsonl"):
        export_records([trajectory] * 2, tmp_path / "y.json", format="atif")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_file_is_not_overwritten_unless_told(tmp_path, trajectory):
    path = tmp_path / "x.jsonl"
    path.write_text("precious")
    with pytest.raises(RecordError, match="is there already"):
        export_records([trajectory], path, format="native")
    assert path.read_text() == "precious"
    assert export_records([trajectory], path, format="native", overwrite=True) == 1
    assert list(read_records(path)) == [trajectory]


def test_nothing_takes_the_place_of_no_file(tmp_path, trajectory):
    path = tmp_path / "x.jsonl"
    export_records([trajectory], path, format="native")
    with pytest.raises(RecordError, match="nothing to write"):
        export_records([], path, format="native", overwrite=True)
    assert list(read_records(path)) == [trajectory]


def test_a_failing_export_leaves_nothing_behind(tmp_path, trajectory):
    def broken():
        yield trajectory
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        export_records(broken(), tmp_path / "x.jsonl", format="native")
    with pytest.raises(ConfigError, match="unknown format"):
        export_records([trajectory], tmp_path / "x.jsonl", format="csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_spared(tmp_path, trajectory):
    path = tmp_path / "x.jsonl"

    def slowly():
        path.write_text("precious")
        yield trajectory

    with pytest.raises(RecordError, match="is there already"):
        export_records(slowly(), path, format="native")
    assert path.read_text() == "precious"


def test_an_action_like_reasoning_comes_back_as_an_action(tmp_path, trajectory):
    step = replace(trajectory.steps[1], action=Action("Thought: a\nAction: b"))
    odd = replace(trajectory, steps=(trajectory.steps[0], step))
    for name in CHATS:
        path = tmp_path / f"{name}.jsonl"
        export_records([odd], path, format=name)
        assert list(read_records(path)) == [odd]
