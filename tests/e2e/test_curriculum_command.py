"""`dreamgym train --curriculum`: tasks by value, new ones made in a dream, killed on the way."""

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
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
pytestmark = pytest.mark.slow

QUICK = (
    "--set", "rl.groups=4", "--set", "rl.group_size=4", "--set", "rl.max_steps=6",
    "--set", "rl.eval_every=0", "--set", "rl.threads=1", "--gate", "off",
)  # fmt: skip
COURSE = (
    "--curriculum", "--set", "curriculum.maker=records", "--set", "curriculum.refill_every=1",
    "--set", "curriculum.synthetic_share=0.5", "--set", "curriculum.clusters=1",
    "--set", "curriculum.value=cluster", "--set", "curriculum.feasible_visits=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(small_start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("curriculum")
    shutil.copytree(small_start, folder, dirs_exist_ok=True)
    return folder


def words(out, *more):
    start = ("train", "--algo", "grpo", "--world", "dream", "--from", "start", "--steps", "4")
    return [str(DREAMGYM), *start, "--out", out, *QUICK, *COURSE, *more]


def run(place, command):
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=300, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr + done.stdout


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_killed_run_ends_with_the_same_pool_and_weights(place):
    run(place, words("whole"))
    pool = lines(place / "whole/tasks.jsonl")
    made = [row for row in pool if row["source"] == "dream"]
    assert any(row["visits"] for row in made)
    assert all(row["parents"] for row in made)
    events = lines(place / "whole/events.jsonl")
    added = [one for one in events if one["event"] == "task_added"]
    assert {one["id"] for one in added} == {row["id"] for row in made}
    rows = lines(place / "whole/metrics.jsonl")
    assert rows[-1]["tasks/added"] == len(made)
    assert max(row["tasks/synthetic_share"] for row in rows) == 0.5

    began = subprocess.Popen(
        words("killed"), cwd=place, env=ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while began.poll() is None and not list(place.glob("killed/checkpoints/step-*2.json")):
        time.sleep(0.02)
    began.send_signal(signal.SIGKILL)
    began.communicate()
    assert not (place / "killed/result.json").exists()
    run(place, words("killed", "--resume"))
    assert lines(place / "killed/tasks.jsonl") == pool
    weights = [
        (place / name / "policy/model.safetensors").read_bytes() for name in ("whole", "killed")
    ]
    assert weights[0] == weights[1]
