"""The installed command line, run as a user runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DREAMGYM = Path(sys.executable).with_name("dreamgym")

STAIRCASE = '''
"""A staircase to climb: quick to start, slow enough to be killed on the way."""
import time
from dataclasses import replace
from dreamgym.types import Observation, Opening, Split, StepResult, Task

HEIGHT = 5

class Engine:
    version = "staircase 1"
    mapper = "plain"

    def __init__(self, spec):
        self.env = str(spec)

    def tasks(self, split):
        first = {Split.TRAIN: 0, Split.DEV: 1000, Split.TEST: 2000}[split]
        return [Task(f"{self.env}#{n}", self.env, str(n), split) for n in range(first, first + 40)]

    def open(self, task):
        if not task.key.isdigit():
            raise ValueError(f"staircases are numbered, this is {task.key!r}")
        return Game(task)

    def entities(self, opening):
        return frozenset({"stair"})

    def close(self):
        pass

class Game:
    def __init__(self, task):
        self.task, self.at = task, 0

    def look(self):
        ways = (["down"] if self.at else []) + ["up"]
        return Observation(f"staircase {self.task.key}, stair {self.at} of {HEIGHT}", tuple(ways))

    def reset(self, seed):
        self.at = 0
        return Opening(replace(self.task, goal="climb to the top"), self.look())

    def step(self, action):
        time.sleep(0.002)
        if action not in self.look().admissible:
            return StepResult(self.look(), refused=True)
        self.at += 1 if action == "up" else -1
        top = self.at == HEIGHT
        return StepResult(self.look(), reward=float(top), terminated=top, success=top)

    def expert(self):
        return ("up",) * (HEIGHT - self.at)

    def close(self):
        pass

def make_engine(spec):
    return Engine(spec)
'''


@pytest.fixture(scope="session")
def small_start(small_dream, tmp_path_factory):
    """A copy of the folder of `small_dream`, with `start`: a policy that was cloned a little."""
    folder = tmp_path_factory.mktemp("start")
    shutil.copytree(small_dream, folder, dirs_exist_ok=True)
    words = (
        "train", "--store", "data", "--demos", "8", "--steps", "14", "--out", "start",
        "--set", "train.tokens_per_step=384", "--set", "train.threads=1", "--set",
        "train.behaviour=expert", "--set", "policy.vocabulary=400",
    )  # fmt: skip
    done = subprocess.run(
        [str(DREAMGYM), *words], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


@pytest.fixture
def shell(tmp_path):
    """Run `dreamgym ...` in an empty folder; returns the finished process."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}

    def run(*words: str, check: bool = True, start: bool = False):
        command = [str(DREAMGYM), *words]
        if start:
            return subprocess.Popen(
                command, cwd=tmp_path, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        if check:
            assert done.returncode == 0, done.stderr + done.stdout
        return done

    run.folder = tmp_path
    run.environment = environment
    return run


@pytest.fixture
def staircase(shell):
    """The spec of a small engine of one's own, lying in the folder the command runs in."""
    (shell.folder / "staircase.py").write_text(STAIRCASE)
    return "py/staircase:make_engine"
