"""Writers that are killed, writers that write at once: no acknowledged row is ever lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dreamgym.replay import open_store

PROGRAM = Path(__file__).with_name("writers.py")


def run(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path):
    output = run("crash", tmp_path / "experience.sqlite", 26, 7)
    assert output.startswith("52 kills")
    assert "writer failed" not in output


def test_several_processes_write_at_once(tmp_path):
    path = tmp_path / "experience.sqlite"
    writers, batches, steps = 4, 12, 5
    run("together", path, writers, batches)
    with open_store(path) as store:
        names = store.trajectory_ids()
        assert len(names) == 2 * writers * batches + batches
        (group,) = store.stats()
        assert group.transitions == (writers * batches + 2 * batches) * steps
        hits = store.search("You are in repeat 3 room 0.", "go on", k=1)
        assert hits[0].count == writers
