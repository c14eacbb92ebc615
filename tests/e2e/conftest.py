"""The installed command line, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DREAMGYM = Path(sys.executable).with_name("dreamgym")

STAIRCASE = '''
"""A staircase to climb: quick to start, slow enough to be killed on the way."""
import time
from dataclasses import replace
from dreamgym.envs.spec import read_params
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
    read_params(spec, {})
    return Engine(spec)
'''


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
def inside(tmp_path, monkeypatch, capsys):
    """Run `dreamgym ...` like `shell`, but in this process: for words that are refused, and reads.

    It is the same `main`, without the seconds that starting it and its imports take each time.
    """
    from dreamgym.cli.main import main

    def run(*words: str, check: bool = True, folder=tmp_path):
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", "200")
            patch.setenv("NO_COLOR", "1")
            patch.setattr(sys, "argv", ["dreamgym", *words])
            patch.setattr(sys, "path", [*sys.path])
            with pytest.raises(SystemExit) as ended:
                main()
        said = capsys.readouterr()
        done = subprocess.CompletedProcess(words, ended.value.code or 0, said.out, said.err)
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    run.folder = tmp_path
    return run


@pytest.fixture
def staircase(shell):
    """The spec of a small engine of one's own, lying in the folder the command runs in."""
    (shell.folder / "staircase.py").write_text(STAIRCASE)
    return "py/staircase:make_engine"
