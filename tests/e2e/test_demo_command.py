"""`dreamgym demo`: all stages, killed on the way; a gate that is shut; what is refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DREAMGYM = Path(sys.executable).with_name("dreamgym")
CORRIDOR = "py/coin_corridor:make_engine"
ENVIRONMENT = {**os.environ, "COLUMNS": "150", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
pytestmark = pytest.mark.slow

SMALL = (
    "collect.tasks=12", "collect.episodes=36", "collect.max_steps=8", "train.demos=4",
    "train.steps=8", "train.tokens_per_step=512", "policy.vocabulary=600", "fit.steps=16",
    "fit.tokens_per_step=768", "fit.eval_every=16", "fit.threads=1", "train.threads=1",
    "rl.threads=1", "audit.episodes=6", "audit.policy_episodes=8", "audit.max_steps=8",
    "audit.luck_episodes=0", "eval.episodes=8", "eval.max_steps=8", "rl.steps=3", "rl.groups=2",
    "rl.group_size=4", "rl.max_steps=8", "rl.eval_every=2", "rl.eval_episodes=4",
    "rl.then_real=120", "env.workers=1",
)  # fmt: skip
OPEN = (
    "audit.min_precision=0", "audit.min_wins=0", "audit.max_gap=1", "audit.max_false_success=1",
    "audit.min_refused=0", "audit.min_agreement=0", "audit.max_unknown=1", "audit.max_failed=1",
)  # fmt: skip
STAGES = [
    "recorded", "walks", "held", "start", "start-judged", "explored", "own", "dream", "audit",
    "dreamt", "dreamt-judged", "real", "real-judged",
]  # fmt: skip


@pytest.fixture
def place(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "coin_corridor.py", tmp_path)
    return tmp_path


def words(*settings, out="here"):
    chosen = [word for setting in settings for word in ("--set", setting)]
    return [str(DREAMGYM), "demo", "--env", CORRIDOR, "--out", out, *chosen]


def run(place, command, *, code=0):
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=600, env=ENVIRONMENT
    )
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def kill_when(place, command, there):
    """Run the command and kill it once a file is there."""
    begun = subprocess.Popen(
        command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    while begun.poll() is None and not there.exists():
        time.sleep(0.01)
    begun.send_signal(signal.SIGKILL)
    begun.communicate()
    assert there.exists(), "it ended before it could be killed"


def results(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/result.json")}


def test_the_whole_way_killed_and_resumed(place, inside):
    command, here = words(*SMALL, *OPEN), place / "here"
    kill_when(place, command, here / "dreamt/checkpoints/step-000000001.json")
    before = results(here)
    assert list(before) and set(before) == set(STAGES[: STAGES.index("dreamt")])
    assert not (here / "result.json").exists()

    told = run(place, [*command, "--resume"])
    assert results(here).items() >= before.items()
    assert "[9/13 audit] done before" in told
    found = json.loads((here / "result.json").read_text())
    for name in ("warm_start", "dream", "sim_to_real"):
        rate = found["real_success"][name]
        assert rate["episodes"] == 8
        assert 0 <= rate["low"] <= rate["mean"] <= rate["high"] <= 1
    used = found["real_transitions"]
    assert used["online_dream"] == 0 < used["online_sim_to_real"] <= 120 < used["offline"]
    dreamt = json.loads((here / "dreamt/result.json").read_text())
    assert used["offline"] == dreamt["real_transitions"]["offline"], "no stage is forgotten"
    assert found["gate"] == {"open": True, "reasons": []}
    assert set(found["seconds"]) == set(found["processor_seconds"]) == {*STAGES, "total"}
    assert found["seed"] == 0 and found["versions"]["dreamgym"] and found["config_digest"]
    # The killed step was made again and no step is missing.
    rows = map(json.loads, (here / "dreamt/metrics.jsonl").read_text().splitlines())
    assert sorted({row["step"] for row in rows}) == [0, 1, 2, 3]
    assert "Success by step" in told and "after sim-to-real" in told and "report.html" in told
    page = (here / "report.html").read_text()
    assert "What came of it" in page and "before and after" in page
    assert "http://" not in page and "https://" not in page
    dreamt = page.partition("Episodes to read")[2]
    assert "· in the dream ·" in dreamt and "it had seen" in dreamt
    assert re.search(r"<p class='why'>(?!after )", dreamt), "with the dream's reasoning"
    kept = [file.read_text() for file in (here / "real/episodes").iterdir()]
    real = [json.loads(line) for text in kept for line in text.splitlines()]
    assert {one["provenance"]["source"] for one in real} == {"dream", "real"}

    made = {path: path.stat().st_mtime_ns for path in here.glob("*/result.json")}
    again = inside(*command[1:]).stdout
    assert again.count("done before") == len(STAGES)
    assert {path: path.stat().st_mtime_ns for path in here.glob("*/result.json")} == made
    inside("report", "here")
    assert (here / "report.html").read_text() == page, "a report is no poorer than the demo's page"
    other = inside(*command[1:], "--seed", "5", check=False)
    assert other.returncode == 1
    assert "was made with other settings: seed = 5" in other.stderr


def test_nothing_is_trained_where_the_gate_is_shut(place):
    told = run(place, words(*SMALL, "fit.steps=1", "fit.eval_every=1"), code=3)
    assert "The gate is shut, so nothing was trained" in told
    assert "here/audit/audit.html" in told
    assert (place / "here/audit/audit.html").is_file()
    assert not (place / "here/dreamt").exists()
    found = json.loads((place / "here/result.json").read_text())
    assert not found["gate"]["open"] and found["gate"]["reasons"]
    assert all(f"- {reason}" in told for reason in found["gate"]["reasons"])
    assert found["real_success"]["warm_start"]["episodes"] == 8
    assert found["real_success"]["dream"] is None
    assert "Nothing was trained" in (place / "here/report.html").read_text()


def test_what_cannot_be_played_is_said_before_anything_is_left(inside):
    told = inside("demo", "--env", "twx/koin", "--out", "wrong", check=False)
    assert told.returncode == 2
    assert "coin" in told.stderr
    assert not (inside.folder / "wrong").exists()
    both = inside("demo", "--fresh", "--resume", check=False)
    assert both.returncode == 2
    assert "give one" in both.stderr


def test_the_house_has_settings_of_its_own(inside):
    shown = inside("demo", "--env", "alfworld", "--dry-run").stdout
    assert 'spec = "alfworld/generated?size=small"' in shown
    assert "forget_share = 0.3" in shown
    assert "mark_actions = true" in shown
