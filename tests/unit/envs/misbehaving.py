"""An engine that does whatever a bad engine may do, on request. Runs inside worker processes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dreamgym.envs.spec import EnvSpec, read_params
from dreamgym.errors import ConfigError, MissingDependency
from dreamgym.types import Observation, Opening, Split, StepResult, Task


class LedgerGame:
    """Shows every action so far, so that a lost or doubled one is seen at once."""

    def __init__(self, task: Task, open_games: list[str]) -> None:
        self._task = task
        self._open_games = open_games
        self._written: list[str] = []
        self._seed = 0

    def reset(self, seed: int) -> Opening:
        if self._task.key == "9" and seed == 1013:
            raise RuntimeError("no luck with 1013")
        self._written, self._seed = [], seed
        task = Task(self._task.id + "!", *self._task_rest()) if seed == 1014 else self._task
        return Opening(task, self._show())

    def _task_rest(self) -> tuple[str, str, Split]:
        return self._task.env, self._task.key, self._task.split

    def step(self, action: str) -> StepResult:
        verb, _, rest = action.partition(" ")
        deed = getattr(self, f"_do_{verb}", None)
        self._written.append((deed(rest) or action) if deed else action)
        if verb == "nonsense":
            return "not a StepResult"  # type: ignore[return-value]
        won = verb == "win"
        return StepResult(self._show(), float(won), terminated=won, success=won)

    def _show(self) -> Observation:
        return Observation(f"{self._task.key}/{self._seed}: {' '.join(self._written)}", ("win",))

    def _do_hang(self, _rest: str) -> None:
        time.sleep(3600)

    def _do_hold(self, _rest: str) -> None:
        ctypes.PyDLL(None).sleep(3600)  # keeps the interpreter lock: no thread of ours can run

    def _do_exit(self, _rest: str) -> None:
        print("these are my last words", file=sys.stderr, flush=True)
        os._exit(3)

    def _do_leave(self, _rest: str) -> None:
        sys.exit("I am leaving")

    def _do_segfault(self, _rest: str) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def _do_raise(self, _rest: str) -> None:
        raise ValueError("the drawer is stuck")

    def _do_print(self, _rest: str) -> None:
        print("garbage " * 1000, flush=True)
        os.write(1, b"\x00\x00\x00\x05pickle?" * 100)

    def _do_chatter(self, _rest: str) -> None:
        os.write(1, b"x" * (1 << 20) + b"\n" * 10)

    def _do_dice(self, _rest: str) -> str:
        return os.urandom(8).hex()

    def _do_slow(self, rest: str) -> None:
        time.sleep(float(rest or 0.3))

    def _do_trap(self, rest: str) -> None:
        """Pass once, and end the process whenever this is done again."""
        if Path(rest).exists():
            os._exit(4)
        Path(rest).touch()

    def _do_child(self, rest: str) -> None:
        with Path(rest).open("w") as file:
            file.write(str(subprocess.Popen(["sleep", "3600"]).pid))

    def _do_cpu(self, _rest: str) -> str:
        return str(time.process_time())

    def _do_fork(self, _rest: str) -> None:
        if os.fork() == 0:
            time.sleep(3600)

    def _do_count(self, _rest: str) -> str:
        return f"{len(self._open_games)} open"

    def expert(self) -> tuple[str, ...]:
        return (str(os.getpid()),)

    def close(self) -> None:
        self._open_games.remove(self._task.id)
        if "stubborn" in self._written:
            raise ValueError("I will not go")


class LedgerEngine:
    version = "ledger 1"
    mapper = "as-is"

    def __init__(self, spec: EnvSpec) -> None:
        params = read_params(spec, {"start": "well", "log": ""})
        if params["log"]:
            with Path(str(params["log"])).open("a") as file:
                file.write("start\n")
        self._spec = str(spec)
        self._open_games: list[str] = []
        _start(str(params["start"]))

    def tasks(self, split: Split) -> tuple[Task, ...]:
        return tuple(Task(f"ledger-{split}-{n}", self._spec, str(n), split) for n in range(10))

    def open(self, task: Task) -> LedgerGame:
        if not task.key.isdigit():
            raise ConfigError(f"no task '{task.key}': keys are numbers")
        self._open_games.append(task.id)
        return LedgerGame(task, self._open_games)

    def entities(self, opening: Opening) -> frozenset[str]:
        return frozenset(opening.observation.text.split())

    def close(self) -> None:
        """Nothing to let go of."""


def _start(how: str) -> None:
    match how.split(" "):
        case ["missing"]:
            raise MissingDependency("no ledger; run pip install 'dreamgym[ledger]'")
        case ["wrong"]:
            raise ConfigError("start=wrong is wrong")
        case ["raise"]:
            raise OSError("port 25333 is taken")
        case ["exit"]:
            os._exit(5)
        case ["hang"]:
            time.sleep(3600)
        case ["once", path] if not Path(path).exists():
            Path(path).touch()
            os._exit(6)
        case ["alone", path]:
            if Path(path).exists():
                os._exit(7)
            Path(path).touch()


def make_engine(spec: EnvSpec) -> LedgerEngine:
    return LedgerEngine(spec)


def make_nothing(_spec: EnvSpec) -> object:
    return object()
