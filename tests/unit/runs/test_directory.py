import json
import subprocess
import sys
from pathlib import Path

import pytest

from dreamgym.errors import RunDirError
from dreamgym.runs import LineWriter, open_run, read_json_lines

ABOUT = {"version": "0", "command": "test"}


def start(path: Path, config: str = "seed = 0\n", *, resume: bool = False):
    return open_run(path, config=config, about=ABOUT, resume=resume)


def test_a_run_leaves_its_settings_events_and_result(tmp_path):
    run = start(tmp_path / "r")
    run.event("happened", what="é")
    run.metrics(3, {"rollout/success": 0.5})
    run.result({"ok": True})
    run.close()
    assert (tmp_path / "r/config.toml").read_text() == "seed = 0\n"
    events = list(read_json_lines(tmp_path / "r/events.jsonl"))
    assert [event["event"] for event in events] == ["started", "happened"]
    assert list(read_json_lines(tmp_path / "r/metrics.jsonl")) == [
        {"step": 3, "rollout/success": 0.5}
    ]
    assert json.loads((tmp_path / "r/result.json").read_text()) == {"ok": True}


def test_a_run_is_not_overwritten(tmp_path):
    start(tmp_path / "r").close()
    before = {p.name: p.read_bytes() for p in (tmp_path / "r").iterdir()}
    with pytest.raises(RunDirError, match="--resume"):
        start(tmp_path / "r")
    assert {p.name: p.read_bytes() for p in (tmp_path / "r").iterdir()} == before


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunDirError, match="other files"):
        start(tmp_path)
    with pytest.raises(RunDirError, match="is a file"):
        start(tmp_path / "thesis.tex")


def test_resume_continues_or_starts(tmp_path):
    start(tmp_path / "r", resume=True).close()
    run = start(tmp_path / "r", resume=True)
    run.close()
    names = [event["event"] for event in read_json_lines(tmp_path / "r/events.jsonl")]
    assert names == ["started", "resumed"]


def test_resume_with_other_settings_names_the_difference(tmp_path):
    start(tmp_path / "r", "seed = 0\n").close()
    with pytest.raises(RunDirError, match=r"seed = 1 \(was seed = 0\)"):
        start(tmp_path / "r", "seed = 1\n", resume=True)


def test_a_setting_that_is_younger_than_the_run_had_its_default(tmp_path):
    young = "seed = 0\n\n[policy]\nmarks = false\n"
    start(tmp_path / "r", "seed = 0\n").close()
    open_run(tmp_path / "r", config=young, about={}, resume=True, defaults=young).close()
    chosen = young.replace("false", "true")
    with pytest.raises(RunDirError, match=r"policy.marks = true \(was policy.marks = false\)"):
        open_run(tmp_path / "r", config=chosen, about={}, resume=True, defaults=young)


def test_settings_that_may_change_are_taken_over_and_noted(tmp_path):
    before, after = 'seed = 0\n\n[llm]\nurl = "a"\n', 'seed = 0\n\n[llm]\nurl = "b"\n'
    start(tmp_path / "r", before).close()
    with pytest.raises(RunDirError, match=r'llm.url = "b" \(was llm.url = "a"\)'):
        start(tmp_path / "r", after, resume=True)
    free = frozenset({"llm.url"})
    open_run(tmp_path / "r", config=after, about={}, resume=True, may_change=free).close()
    assert (tmp_path / "r/config.toml").read_text() == after
    assert [*read_json_lines(tmp_path / "r/events.jsonl")][-1]["changed"]
    other = after.replace("seed = 0", "seed = 1")
    with pytest.raises(RunDirError, match=r"seed = 1 \(was seed = 0\)"):
        open_run(tmp_path / "r", config=other, about={}, resume=True, may_change=free)


def test_a_start_that_was_killed_can_be_started_again(tmp_path):
    start(tmp_path / "r").close()
    (tmp_path / "r/run.json").unlink()
    start(tmp_path / "r").close()
    assert (tmp_path / "r/run.json").exists()


def test_a_run_has_one_process_at_a_time(tmp_path):
    run = start(tmp_path / "r")
    code = (
        "from pathlib import Path; from dreamgym.runs import open_run; "
        f"open_run(Path({str(tmp_path / 'r')!r}), config='seed = 0\\n', about={{}}, resume=True)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "in use by another process" in other.stderr
    run.close()
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_torn_line_is_dropped_and_writing_goes_on(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2')
    assert list(read_json_lines(path)) == [{"a": 1}]
    with LineWriter(path) as lines:
        lines.write({"a": 3})
    assert list(read_json_lines(path)) == [{"a": 1}, {"a": 3}]


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": ')
    LineWriter(path).close()
    assert path.read_bytes() == b""


def test_not_a_number_is_not_written(tmp_path):
    with LineWriter(tmp_path / "x.jsonl") as lines, pytest.raises(ValueError, match="JSON"):
        lines.write({"a": float("nan")})


def test_a_run_that_could_not_begin_leaves_nothing(tmp_path):
    run = start(tmp_path / "r")
    run.discard()
    run.close()
    assert not (tmp_path / "r").exists()
    start(tmp_path / "r").close()
    again = start(tmp_path / "r", resume=True)
    again.discard()
    again.close()
    assert (tmp_path / "r/run.json").exists()
