"""`dreamgym train --then-real`: from a dream to reality, killed on the way; and what is refused."""

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

from dreamgym.models.checkpoint import load_checkpoint

DREAMGYM = Path(sys.executable).with_name("dreamgym")
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
pytestmark = pytest.mark.slow

QUICK = (
    "--set", "rl.groups=2", "--set", "rl.group_size=4", "--set", "rl.max_steps=6",
    "--set", "rl.eval_episodes=4", "--set", "rl.eval_every=2", "--set", "rl.eval_greedy=false",
    "--set", "rl.threads=1", "--set", "env.workers=1",
)  # fmt: skip
TRANSFER = (
    "--world", "dream", "--gate", "off", "--then-real", "150", "--set", "rl.switch_step=2",
    "--set", "rl.watch=note", "--set", "rl.watch_every=2", "--set", "rl.watch_episodes=4",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(small_start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("transfer")
    shutil.copytree(small_start, folder, dirs_exist_ok=True)
    return folder


def words(out, *more):
    start = ("train", "--algo", "grpo", "--from", "start", "--steps", "4", "--out", out)
    return [str(DREAMGYM), *start, *QUICK, *more]


def run(place, command, *, check=True, **more):
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, **more
    )
    assert not check or done.returncode == 0, done.stderr + done.stdout
    return done


def kill_after(place, command, step):
    """Run the command and kill it once the checkpoint of a step is there."""
    begun = subprocess.Popen(
        command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    wanted = place / "killed/checkpoints" / f"step-{step:09d}.json"
    while begun.poll() is None and not wanted.exists():
        time.sleep(0.01)
    begun.send_signal(signal.SIGKILL)
    begun.communicate()
    assert not (place / "killed/result.json").exists(), "it was done before it could be killed"


def metrics(folder):
    """Return the rows by step, of those that came twice the later one, without times."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    rows = {line.pop("step"): line for line in lines}
    return {
        step: {name: value for name, value in row.items() if not name.startswith("tim")}
        for step, row in rows.items()
    }


def kept(folder):
    with sqlite3.connect(folder / "experience.sqlite") as store:
        return store.execute("SELECT id, task_id, body FROM trajectories ORDER BY seq").fetchall()


def test_from_a_dream_to_reality_killed_and_damaged_on_the_way(place):
    told = run(place, words("whole", *TRANSFER))
    assert "then for real" in told.stdout
    found = json.loads((place / "whole/result.json").read_text())
    counts = found["real_transitions"]
    assert 150 - 24 < counts["online"] <= counts["online_ceiling"] == 150
    assert 0 < counts["evaluation_watch"] < counts["evaluation"]
    assert counts["offline"] > 0
    assert found["turns"] == [
        {"step": 2, "why": "step 2 was set for it", "to": "real", "weights": 2}
    ]
    events = map(json.loads, (place / "whole/events.jsonl").read_text().splitlines())
    assert [event["step"] for event in events if event["event"] == "turn"] == [2]
    rows = metrics(place / "whole")
    assert rows[2]["transfer/turn"] == 1.0
    assert rows[2]["real/steps_online"] == 0.0
    assert rows[found["steps"]]["real/steps_online"] == counts["online"]
    assert {"val/success_rate", "gap/refused_offline", "gap/alarm", "gap/wins"} <= rows[2].keys()

    again = words("killed", *TRANSFER)
    kill_after(place, again, 1)
    kill_after(place, [*again, "--resume"], 2)
    kill_after(place, [*again, "--resume"], 4)
    newest = max((place / "killed/checkpoints").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed = run(place, [*again, "--resume"])
    assert "is damaged and passed over" in resumed.stderr
    same = json.loads((place / "killed/result.json").read_text())
    different = {name for name in found if found[name] != same[name]}
    assert different <= {"policy", "seconds"}
    assert metrics(place / "killed") == rows
    assert kept(place / "killed") == kept(place / "whole")
    weights = [
        (place / name / "policy/model.safetensors").read_bytes() for name in ("whole", "killed")
    ]
    assert weights[0] == weights[1]


def test_what_cannot_be_done_is_refused_before_anything_is(place, inside):
    for wrong, message in (
        (("--world", "real", "--then-real", "500"), "name a dream with --world"),
        (("--world", "dream"), "may one train in"),
        (("--world", "dream", "--gate", "off", "--set", "rl.tasks=lost"), "has no task 'lost'"),
    ):
        done = inside(*words("wrong", *wrong)[1:], check=False, folder=place)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert not (place / "wrong").exists()


def test_a_full_disk_stops_a_run_that_goes_on_when_there_is_room(place):
    # By a program in between: what runs between fork and exec may hang where there are threads.
    little_room = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = words("full", "--world", "real", "--set", "rl.eval_every=0", "--steps", "1")
    full = run(place, [sys.executable, "-c", little_room, *command], check=False)
    assert full.returncode == 1
    assert "File too large" in full.stderr
    assert "The same command with --resume --out full goes on from there" in full.stderr
    assert "Traceback" not in full.stderr
    assert not (place / "full/result.json").exists()
    run(place, [*command, "--resume"])
    assert json.loads((place / "full/result.json").read_text())["steps"] == 1


def test_practice_goes_on_with_the_optimiser_of_the_run_before(place):
    short = ("--world", "real", "--set", "rl.eval_every=0", "--steps", "2")
    run(place, words("first", *short))
    warm = (*short, "--set", "rl.continued=true")
    run(place, [word if word != "start" else "first" for word in words("second", *warm)])
    learnt = [
        sum("actor/pg_loss" in row for row in metrics(place / name).values())
        for name in ("first", "second")
    ]
    assert learnt[0] > 0, "else there is nothing to go on with"
    moments = load_checkpoint(place / "second/checkpoints").tensors
    counts = {int(moments[name]) for name in moments if name.startswith("adam/step/")}
    assert counts == {2 * sum(learnt)}, "two updates of each step"
    refused = run(place, words("third", *warm), check=False)
    assert refused.returncode == 2 and "rl.continued" in refused.stderr
