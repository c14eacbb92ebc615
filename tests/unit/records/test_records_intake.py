import json
import tracemalloc

import pytest

from dreamgym.errors import ConfigError, RecordError
from dreamgym.records import import_records
from dreamgym.types import Split

GOOD = {"messages": [{"role": "user", "content": "s"}, {"role": "assistant", "content": "a"}]}


@pytest.fixture
def mixed_file(tmp_path):
    """Write a file with so many good and bad records."""

    def write(good, bad):
        path = tmp_path / f"{good}-{bad}.jsonl"
        lines = [json.dumps({**GOOD, "task_id": str(at)}) for at in range(good)]
        path.write_text("\n".join([*lines, *["{oops"] * bad]))
        return path

    return write


def test_an_import_yields_what_was_read_and_counts_it(data):
    with import_records([data / "messages.jsonl", data / "atif.jsonl"]) as imported:
        found = list(imported)
        assert list(imported) == found
    report = imported.report
    assert (report.records, report.good, report.bad) == (7, 7, 0)
    assert report.successes == sum(one.success for one in found) == 4
    assert report.rewarded == sum(bool(one.total_reward) for one in found) == 4
    assert report.steps == sum(len(one.steps) for one in found)


def test_two_readers_of_one_import_do_not_disturb_each_other(data):
    with import_records([data]) as imported:
        pairs = list(zip(imported, imported, strict=True))
    assert all(one == other for one, other in pairs)


def test_a_folder_is_imported_whole(data):
    with import_records([data]) as imported:
        assert imported.report.good == 2 + 2 + 1 + 5 + 1 + 2


@pytest.mark.parametrize(
    ("good", "bad", "share"), [(9, 1, 0.1), (1, 1, 0.5), (0, 3, 1.0), (5, 0, 0.0)]
)
def test_bad_records_within_the_share_are_left_out(mixed_file, good, bad, share):
    with import_records([mixed_file(good, bad)], max_bad_share=share) as imported:
        assert len(list(imported)) == good
        assert imported.report.bad == len(imported.report.first_bad) == bad


@pytest.mark.parametrize(("good", "bad", "share"), [(9, 1, 0.0), (9, 1, 0.09), (0, 3, 0.99)])
def test_more_of_them_fail_the_import_before_anything_is_handed_over(mixed_file, good, bad, share):
    path = mixed_file(good, bad)
    with pytest.raises(RecordError) as caught:
        import_records([path], max_bad_share=share)
    message = str(caught.value)
    assert f"{bad} of {good + bad} records are bad" in message
    assert f"{path}:{good + 1}: not JSON" in message
    assert "nothing was imported" in message


def test_of_many_reasons_the_first_are_shown(mixed_file):
    with pytest.raises(RecordError, match=r"\.\.\. and 1,195 more"):
        import_records([mixed_file(3, 1200)])


def test_an_import_of_nothing_is_an_error(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(RecordError, match="no records in"):
        import_records([tmp_path])
    with pytest.raises(RecordError, match="no records in nothing"):
        import_records([])
    with pytest.raises(RecordError, match="no such file"):
        import_records([tmp_path / "absent"])


@pytest.mark.parametrize("layout", ["list", "lines"])
def test_memory_does_not_grow_with_the_files(tmp_path, layout):
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[" if layout == "list" else "")
        for at in range(2000):
            record = {**GOOD, "task_id": str(at), "padding": "x" * 10_000}
            file.write(("," if at and layout == "list" else "") + json.dumps(record) + "\n")
        file.write("]" if layout == "list" else "")
    tracemalloc.start()
    with import_records([path]) as imported:
        count = sum(1 for _ in imported)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2000
    assert path.stat().st_size > 20_000_000
    assert peak < 4_000_000


def test_a_share_is_a_share(data):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        import_records([data], max_bad_share=5)


def test_environment_and_split_reach_the_tasks(data):
    with import_records([data / "agenttraj.json"], env="mine", split=Split.TEST) as imported:
        assert {(one.task.env, one.task.split) for one in imported} == {("mine", Split.TEST)}
