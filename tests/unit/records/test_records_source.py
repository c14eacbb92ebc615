"""Files as they come: broken, truncated, oddly encoded, huge."""

import gzip
import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym.records import BadRecord, read_records, source
from dreamgym.records.source import Found, files_in, read_values
from dreamgym.types import Trajectory

GOOD = {"messages": [{"role": "user", "content": "s"}, {"role": "assistant", "content": "a"}]}
LINE = json.dumps(GOOD).encode()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=15,
)  # fmt: skip


def write(tmp_path, content, name="x.jsonl"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def outcome(path):
    """Good or bad, by place."""
    return [
        (one.place, one.reason) if isinstance(one, BadRecord) else "good"
        for one in read_records(path)
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf", b"[]", b"\n[ ]\n"])
def test_nothing_is_no_record(tmp_path, content):
    assert outcome(write(tmp_path, content)) == []


@pytest.mark.parametrize(
    "content",
    [
        LINE,
        b"\xef\xbb\xbf" + LINE + b"\r\n\r\n",
        json.dumps(GOOD, indent=2).encode(),
        b"\xef\xbb\xbf" + json.dumps(GOOD, indent=2).replace("\n", "\r\n").encode(),
        b" [ " + LINE + b"\n]",
        json.dumps([GOOD], indent=4).encode(),
        gzip.compress(LINE, mtime=0),
        gzip.compress(json.dumps([GOOD]).encode(), mtime=0),
    ],
)
def test_one_record_however_it_is_written(tmp_path, content):
    assert outcome(write(tmp_path, content)) == ["good"]


def test_a_truncated_line_costs_itself_only(tmp_path):
    path = write(tmp_path, b"\n".join([LINE[:-9], LINE, LINE[:20]]))
    (first, reason), good, (last, _) = outcome(path)
    assert (first, good, last) == (1, "good", 3)
    assert reason.startswith("not JSON: ")


def test_a_truncated_list_keeps_what_came_before(tmp_path):
    path = write(tmp_path, b"[" + LINE + b",\n" + LINE + b",\n" + LINE[:30])
    first, second, (place, reason) = outcome(path)
    assert (first, second, place) == ("good", "good", 3)
    assert "the list cannot be read on" in reason


def test_what_follows_a_list_is_not_dropped_in_silence(tmp_path):
    path = write(tmp_path, b"[" + LINE + b"]\n" + b" " * 200_000 + LINE)
    assert outcome(path) == ["good", (2, "there is more behind the end of the list")]


def test_wrong_bytes_cost_their_record_only(tmp_path):
    wrong = LINE.replace(b'"s"', b'"\xff\xfe"')
    for name, content in (("a", b"\n".join([LINE, wrong, LINE])),
                          ("b", b"[" + b",".join([LINE, wrong, LINE]) + b"]")):  # fmt: skip
        first, (place, reason), last = outcome(write(tmp_path, content, name))
        assert (first, place, last) == ("good", 2, "good")
        assert reason.startswith("not UTF-8")


def test_half_characters_are_refused(tmp_path):
    lone = LINE.replace(b'"s"', rb'"\ud800"')
    inner = json.dumps({"messages": lone.decode()[13:-1]}).encode()
    found = outcome(write(tmp_path, b"\n".join([lone, inner])))
    assert [place for place, _ in found] == [1, 2]
    assert all("half a character" in reason for _, reason in found)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" + b"0" * 400])
def test_what_is_no_number_is_refused(tmp_path, number):
    path = write(tmp_path, LINE[:-1] + b', "reward": ' + number + b"}")
    ((place, reason),) = outcome(path)
    assert place == 1
    assert "number" in reason


def test_rewards_that_add_up_to_no_number_are_refused(tmp_path):
    turns = [("user", None), ("assistant", 1.5e308), ("user", 1.5e308)]
    record = {"messages": [{"role": role, "content": "x", "reward": r} for role, r in turns]}
    ((_, reason),) = outcome(write(tmp_path, json.dumps(record).encode()))
    assert "add up to no number" in reason


@pytest.mark.parametrize(
    "text",
    ["Thought:" + "\n" * 300_000, "Thought:" + " \n" * 150_000, "\n" * 300_000 + "Goal",
     "Instruction: [SEP] " * 20_000, "<think>" * 50_000, "Thought: Action " * 20_000],
)  # fmt: skip
def test_long_and_odd_texts_take_no_time(tmp_path, text):
    turns = [("user", text), ("assistant", text), ("user", text)]
    record = {"messages": [{"role": role, "content": content} for role, content in turns]}
    started = process_time()
    assert len(outcome(write(tmp_path, json.dumps(record).encode()))) == 1
    assert process_time() - started < 2


def test_nesting_without_end_is_refused(tmp_path):
    deep = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    found = outcome(write(tmp_path, deep + b"\n" + LINE))
    assert found[0][0] == 1
    assert found[1] == "good"


def test_a_damaged_archive_is_reported(tmp_path):
    packed = gzip.compress(b"\n".join([LINE] * 2000))
    found = outcome(write(tmp_path, packed[: len(packed) // 2]))
    assert "compressed file is damaged" in found[-1][1]
    assert set(found[:-1]) <= {"good"}


def test_a_line_without_end_is_skipped_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LARGEST", 1000)
    path = write(tmp_path, b"\n".join([LINE, b"x" * 5000, LINE, b"y" * 1000, LINE]))
    assert [one if one == "good" else one[0] for one in outcome(path)] == [
        "good", 2, "good", 4, "good"
    ]  # fmt: skip


def test_an_element_without_end_stops_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LARGEST", 1000)
    path = write(tmp_path, b"[" + LINE + b', "' + b"x" * 500_000)
    first, (place, _) = outcome(path)
    assert (first, place) == ("good", 2)


@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.integers(1, 50))
def test_a_list_is_read_as_it_would_be_at_once(tmp_path_factory, values, chunk):
    path = tmp_path_factory.mktemp("list") / "x.json"
    path.write_text(json.dumps(values, ensure_ascii=False, indent=chunk % 3 or None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_CHUNK", chunk)
        found = list(read_values(path))
    assert found == [Found(at, value) for at, value in enumerate(values, start=1)]


@settings(deadline=None)
@given(json_values)
def test_no_json_breaks_a_reader(tmp_path_factory, value):
    records = [
        {"messages": value}, {"conversations": value}, {"trajectory": value},
        {"messages": [{"role": "user", "content": value}, {"role": "assistant", "content": value}]},
        {"messages": [{"role": "user", "content": "s"},
                      {"role": "assistant", "tool_calls": value, "reasoning": value}],
         "metadata": value, "task": value, "success": value},
        {"conversations": [{"from": "human", "value": "s"}, {"from": "gpt", "value": "a"}],
         "dreamgym": value, "system": value},
        {**GOOD, "dreamgym": {"record": value, "texts": value}},
        {**GOOD, "dreamgym": {"record": {"steps": [value], "task": value, "opening": value},
                              "texts": "x"}},
        {"schema_version": "ATIF-v1.5", "steps": value},
        {"schema_version": "ATIF-v1.5", "extra": value, "final_metrics": value,
         "steps": [{"source": "user", "message": "s"},
                   {"source": "agent", "message": value, "tool_calls": value,
                    "observation": value, "extra": value}]},
        {"v": 1, "kind": "trajectory", "id": value, "task": value, "steps": value}, value,
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = list(read_records(path))
    assert len(found) == len(records)
    assert all(isinstance(one, Trajectory | BadRecord) for one in found)


def test_a_folder_gives_its_record_files_in_order(tmp_path):
    for name in ("b.jsonl", "a/c.json", "a/d.jsonl.gz", "README.md", ".hidden.json", "e.NDJSON"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(LINE)
    names = [str(path.relative_to(tmp_path)) for path in files_in(tmp_path)]
    assert names == ["a/c.json", "a/d.jsonl.gz", "b.jsonl"]
