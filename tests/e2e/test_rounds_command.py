"""`dreamgym train --rounds`: a dream that reality has left behind is mended between rounds."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

DREAMGYM = Path(sys.executable).with_name("dreamgym")
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
pytestmark = pytest.mark.slow

QUICK = (
    "rl.groups=2", "rl.group_size=4", "rl.max_steps=6", "rl.eval_episodes=4", "rl.eval_every=2",
    "rl.eval_greedy=false", "rl.threads=1", "env.workers=1", "rl.refit_steps=2",
)  # fmt: skip
WATCHED = (
    "rl.watch=stop", "rl.watch_every=1", "rl.watch_episodes=16", "rl.watch_precision=0.9",
    "rl.watch_wins=1",
)  # fmt: skip
OPEN = (
    "audit.min_precision=0", "audit.min_wins=0", "audit.max_gap=1", "audit.max_false_success=1",
    "audit.min_refused=0", "audit.min_agreement=0", "audit.max_unknown=1", "audit.max_failed=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(small_start, tmp_path_factory):
    """A folder with a start and a dream of a corridor where most coins cannot be won any more."""
    folder = tmp_path_factory.mktemp("rounds")
    shutil.copytree(small_start, folder, dirs_exist_ok=True)
    engine = folder / "coin_corridor.py"
    before = engine.read_text()
    after = before.replace('what == "coin"\n', 'what == "coin" and int(self.task.key) % 3 == 0\n')
    assert after != before
    engine.write_text(after)
    return folder


def run(place, *words, settings=(), code=0):
    chosen = [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(
        [str(DREAMGYM), *words, *chosen], cwd=place, capture_output=True, text=True, timeout=300,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def kill_when(place, words, settings, there):
    """Run the command and kill it once a file is there."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    begun = subprocess.Popen(
        [str(DREAMGYM), *words, *chosen], cwd=place, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=ENVIRONMENT,
    )  # fmt: skip
    while begun.poll() is None and not there.exists():
        time.sleep(0.01)
    begun.send_signal(signal.SIGKILL)
    begun.communicate()
    assert there.exists(), "it ended before it could be killed"


def told(store, columns="id, body"):
    with sqlite3.connect(store) as opened:
        return opened.execute(f"SELECT {columns} FROM trajectories ORDER BY seq").fetchall()


def without_times(folder):
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [
        {name: value for name, value in row.items() if not name.startswith("tim")} for row in rows
    ]


def test_a_dream_is_mended_and_a_killed_run_comes_to_the_same(place):
    # On train tasks, because the small dream knows no others.
    run(place, "audit", "--world", "dream", "--data", "data", "--policy", "start", "--out", "audit",
        settings=("audit.split=train", "audit.episodes=20", "audit.policy_episodes=16",
                  "audit.max_steps=6", "audit.luck_episodes=0", "env.workers=1"))  # fmt: skip
    recorded = told(json.loads((place / "dream/dream.json").read_text())["store"])
    words = ("train", "--algo", "grpo", "--from", "start", "--world", "dream", "--gate", "audit",
             "--steps", "4", "--rounds", "2", "--out", "run")  # fmt: skip
    settings = (*QUICK, *WATCHED, *OPEN)

    kill_when(place, words, settings, place / "run/dream-2/result.json")
    (place / "run").rename(place / "killed-later")
    shown = run(place, *words, settings=settings)
    assert "Then repair" in shown
    assert [path.name for path in sorted((place / "run").glob("*-*"))] == [
        "audit-2", "dream-2", "round-1", "round-2",
    ]  # fmt: skip
    found = json.loads((place / "run/result.json").read_text())
    first, second = found["rounds"]
    assert first["why"].startswith("precision: ")
    assert first["then"]["what"] == "repair"
    assert second["world"] == first["then"]["dream"] == str(place / "run/dream-2")
    assert first["dream_steps"] + second["dream_steps"] == found["steps"] <= 4
    counts = found["real_transitions"]
    assert counts["online"] == 0 < counts["evaluation_watch"] < counts["evaluation"]
    assert counts["evaluation_audit"] > 0
    # What the watch told again stands in the copy; the store of the first dream is as it was.
    joined = [name for name, _ in told(place / "run/experience.sqlite")]
    new = [name for name, _ in told(place / "run/round-1/experience.sqlite")]
    assert new and joined == [*(name for name, _ in recorded), *new]
    assert told(json.loads((place / "dream/dream.json").read_text())["store"]) == recorded
    assert {"policy.json", "config.json"} <= {one.name for one in (place / "run/policy").iterdir()}

    (place / "run").rename(place / "whole")
    (place / "killed-later").rename(place / "run")
    resumed = run(place, *words, "--resume", settings=settings)
    assert "audit-2: audit the new dream" in resumed and "dream-2: fit" not in resumed
    again = json.loads((place / "run/result.json").read_text())
    assert {name for name in found if found[name] != again[name]} <= {"seconds"}
    assert without_times(place / "run") == without_times(place / "whole")
    for name in ("policy", "dream-2/model"):
        weights = [
            (place / whose / name / "model.safetensors").read_bytes() for whose in ("run", "whole")
        ]
        assert weights[0] == weights[1]
    assert told(place / "run/experience.sqlite") == told(place / "whole/experience.sqlite")


def test_real_practice_refreshes_the_dream(place):
    words = ("train", "--algo", "grpo", "--from", "start", "--world", "dream", "--gate", "off",
             "--steps", "2", "--rounds", "2", "--then-real", "61", "--out", "fresh")  # fmt: skip
    run(place, *words, settings=(*QUICK, "rl.eval_every=0"))
    found = json.loads((place / "fresh/result.json").read_text())
    assert [one["then"] and one["then"]["what"] for one in found["rounds"]] == ["refresh", None]
    assert 0 < found["real_transitions"]["online"] <= 61
    ceilings = [
        json.loads((place / f"fresh/round-{number}/result.json").read_text())["real_transitions"]
        for number in (1, 2)
    ]
    first = found["rounds"][0]["real_transitions"]["online"]
    assert [one["online_ceiling"] for one in ceilings] == [31, 61 - first]
    learnt = json.loads((place / "fresh/dream-2/result.json").read_text())
    assert learnt["real_transitions"]["offline"] == (found["real_transitions"]["offline"] + first)
    assert {row["step"] for row in without_times(place / "fresh")} == set(
        range(1, found["steps"] + 1)
    )


def test_rounds_without_a_dream_are_refused(place, inside):
    words = ("train", "--algo", "grpo", "--from", "start", "--world", "real", "--rounds", "2")
    said = inside(*words, "--out", "wrong", check=False, folder=place)
    assert said.returncode == 2
    assert "name a dream with --world" in said.stderr
    assert "Traceback" not in said.stderr
    assert not (place / "wrong").exists()
