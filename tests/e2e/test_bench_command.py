"""`dreamgym bench`: a tiny suite, interrupted, started again, and its tables."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DREAMGYM = Path(sys.executable).with_name("dreamgym")
CORRIDOR = "py/coin_corridor:make_engine"
pytestmark = pytest.mark.slow

BENCH = (
    "bench", "table1", "--scale", "tiny", "--env", CORRIDOR, "--arm", "start", "--arm",
    "grpo-dream", "--seeds", "1", "--out", "suite",
)  # fmt: skip


def start(folder, *words):
    return subprocess.Popen(
        [str(DREAMGYM), *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )  # fmt: skip


def heard(process, *, seconds):
    """What a process said when it came to its end; one that does not is stopped."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise


def test_a_suite_that_was_interrupted_goes_on(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "coin_corridor.py", tmp_path)
    began = start(tmp_path, *BENCH)
    recorded = tmp_path / "suite/stages.jsonl"
    while began.poll() is None and not (recorded.exists() and recorded.read_text()):
        time.sleep(0.05)
    began.send_signal(signal.SIGINT)
    told = heard(began, seconds=120)
    assert began.returncode == 130, told
    first = recorded.read_text().splitlines()
    assert not (tmp_path / "suite/result.json").exists()

    again = start(tmp_path, *BENCH, "--jobs", "2")
    told = heard(again, seconds=800)
    assert again.returncode == 0, told
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert [json.dumps(row) for row in rows[: len(first)]] == first
    finished = [row["stage"] for row in rows if row["code"] == 0]
    assert len(finished) == len(set(finished)) == 8
    found = json.loads((tmp_path / "suite/result.json").read_text())
    assert found["failures"] == {}
    cells = {cell["arm"]: cell for cell in found["cells"]}
    assert cells["start"]["episodes"] == cells["grpo-dream"]["episodes"] == 8
    assert cells["grpo-dream"]["online"] == 0 < cells["grpo-dream"]["offline"]
    assert cells["grpo-dream"]["seconds"] > cells["start"]["seconds"] > 0
    assert "| grpo-dream | " in (tmp_path / "suite/table.md").read_text()
    assert "All arms" in (tmp_path / "suite/report.html").read_text()

    other = start(tmp_path, *BENCH[:2], "--scale", "small", *BENCH[4:])
    assert "was made with other settings" in " ".join(heard(other, seconds=120).split())
