"""`dreamgym collect` from the shell: whole, interrupted, killed and resumed."""

import json
import os
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from dreamgym.replay import open_store

KILLS = 30
"""Each at another moment; the replay suite adds its own, for more than fifty together."""


def stored(path):
    with open_store(path) as store:
        return sorted(store.trajectories(), key=lambda trajectory: trajectory.id)


def collect_words(spec, out, *more):
    return ("collect", "--env", spec, "--episodes", "120", "--out", out, *more)


def test_collect_leaves_a_result_and_a_store(shell, staircase):
    done = shell(*collect_words(staircase, "whole"))
    result = json.loads((shell.folder / "whole/result.json").read_text())
    assert result["episodes"] == 120
    assert result["real_transitions"]["offline"] == result["verbs"]["up"] + sum(
        count for verb, count in result["verbs"].items() if verb != "up"
    )
    assert result["success"]["expert"]["mean"] == 1.0
    assert "120 of 120" in done.stdout
    assert "refused actions" in done.stdout
    assert len(stored(shell.folder / "whole/experience.sqlite")) == 120


def test_few_tasks_are_played_several_times(shell, staircase):
    shell(*collect_words(staircase, "few", "--tasks", "7"))
    found = stored(shell.folder / "few/experience.sqlite")
    assert len({trajectory.task.id for trajectory in found}) == 7
    assert len({trajectory.id for trajectory in found}) == 120


def test_a_run_is_not_repeated_by_accident(shell, inside, staircase):
    words = ("collect", "--env", staircase, "--episodes", "6", "--set", "env.workers=1")
    words = (*words, "--out", "once")
    shell(*words)
    again = inside(*words, check=False)
    assert again.returncode == 1
    assert "--resume" in again.stderr
    other = inside(*words, "--resume", "--seed", "5", check=False)
    assert "seed = 5 (was seed = 0)" in other.stderr


@pytest.mark.slow
def test_killed_at_random_moments_nothing_is_lost_or_repeated(shell, staircase):
    shell(*collect_words(staircase, "whole"))
    whole = stored(shell.folder / "whole/experience.sqlite")
    rng = random.Random(0)
    path = shell.folder / "killed/experience.sqlite"
    seen: set[str] = set()
    kills = 0
    while kills < KILLS:
        process = shell(*collect_words(staircase, "killed", "--resume"), start=True)
        time.sleep(rng.uniform(0.2, 1.6))
        finished = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += not finished
        if path.exists():
            with sqlite3.connect(path) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            kept = {trajectory.id for trajectory in stored(path)}
            assert seen <= kept, "an acknowledged trajectory was lost"
            seen = kept
        if finished:
            (shell.folder / "killed").rename(shell.folder / f"done-{kills}")
            assert stored(shell.folder / f"done-{kills}/experience.sqlite") == whole
            seen = set()
    shell(*collect_words(staircase, "killed", "--resume"))
    assert stored(path) == whole


@pytest.mark.slow
def test_killed_in_the_default_environment(shell):
    words = ("collect", "--preset", "tiny", "--episodes", "300")
    shell(*words, "--out", "whole")
    process = shell(*words, "--out", "killed", start=True)
    path = shell.folder / "killed/experience.sqlite"
    while process.poll() is None and not (path.exists() and stored(path)):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < len(stored(path)) < 300, "it was not killed on the way"
    shell(*words, "--out", "killed", "--resume")
    whole = stored(shell.folder / "whole/experience.sqlite")
    assert stored(path) == whole
    assert len(whole) == 300


def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(shell, staircase):
    words = collect_words(staircase, "stopped", "--set", "collect.concurrency=2")
    process = shell(*words, start=True)
    path = shell.folder / "stopped/experience.sqlite"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and len(stored(path)) > 0:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors
    before = {trajectory.id for trajectory in stored(path)}
    assert 0 < len(before) < 120
    shell(*words, "--resume")
    after = {trajectory.id for trajectory in stored(path)}
    assert before < after
    assert len(after) == 120


def test_nothing_is_left_running_after_a_kill(shell, staircase):
    process = shell(*collect_words(staircase, "killed"), start=True)
    time.sleep(1.5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    mine = str(shell.folder)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _running_in(mine):
        time.sleep(0.1)
    assert not _running_in(mine)


def _running_in(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(folder):
                found.append(pid)
        except OSError:
            continue  # gone meanwhile
    return found


@pytest.mark.slow
def test_a_dead_java_costs_its_episode_and_nothing_else(shell):
    """Java is killed while episodes run: its worker is replaced and the others are replayed.

    There are so many that a quick machine is not through before a busy one has found its Java.
    """
    many = 800
    words = ("collect", "--preset", "tiny", "--episodes", str(many), "--out", "java")
    process = shell(*words, start=True)
    killed, deadline = False, time.monotonic() + 60
    path = shell.folder / "java/experience.sqlite"
    while not killed and process.poll() is None and time.monotonic() < deadline:
        if path.exists() and stored(path):
            javas = [pid for pid in _children_of(process.pid) if _name(pid) == "java"]
            if javas:
                os.kill(javas[0], signal.SIGKILL)
                killed = True
        time.sleep(0.02)
    process.communicate(timeout=120)
    assert killed
    assert process.returncode == 0
    result = json.loads((shell.folder / "java/result.json").read_text())
    assert result["worker_restarts"] == 1
    assert sum(result["failed"].values()) <= 1
    assert result["episodes"] >= many - 1
    shell(*words, "--resume")
    assert len(stored(path)) == many, "what failed is tried again"


def _children_of(number):
    found, front = [], [number]
    while front:
        parent = front.pop()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # gone meanwhile
            if int(fields[1]) == parent:
                found.append(int(pid))
                front.append(int(pid))
    return found


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
