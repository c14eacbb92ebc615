"""A small sound environment and the ways to break each of its promises, one at a time."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace

from dreamgym.envs.spec import EnvSpec, read_params
from dreamgym.errors import ConfigError
from dreamgym.types import Observation, Opening, Split, StepResult, Task

LENGTH = 3
FIRST = {Split.TRAIN: 0, Split.DEV: 100, Split.TEST: 200}


class Stairs:
    """Climb to the top of a staircase and ring the bell there."""

    shared_height = 0

    def __init__(self, task: Task, fault: str) -> None:
        self._task = replace(task, goal="" if fault == "goal" else f"Ring bell {task.key}.")
        self._fault = fault
        self._height = 0
        self._over = False

    def reset(self, seed: int) -> Opening:
        Stairs.shared_height = self._height = 0
        if self._fault == "reset forgets" and self._over:
            self._height = 1
        self._over = False
        news = f"Day {seed}. " if self._fault == "seeded start" else ""
        if self._fault == "random start":
            news = os.urandom(4).hex()
        return Opening(self._task, self._look(news))

    def _look(self, news: str = "") -> Observation:
        text = f"{news}You are on stair {self._height} of {self._task.key}'s tower."
        listed = ("look", "ring bell") if self._height == LENGTH else ("climb", "look")
        match self._fault:
            case "no list":
                return Observation(text)
            case "unsorted":
                return Observation(text, tuple(reversed(listed)))
            case "wrong list":
                return Observation(text, ("dance", "sing"))
            case "empty text" if self._height:
                return Observation(" \n", listed)
            case "half a character":
                return Observation(f"{text} \ud800", listed)
        return Observation(text, listed)

    def step(self, action: str) -> StepResult:
        if self._fault == "shared state":
            self._height = Stairs.shared_height
        known = {"climb": self._height < LENGTH, "look": True, "ring bell": self._height == LENGTH}
        if not known.get(action, False):
            return self._refuse(action)
        self._height += action == "climb"
        Stairs.shared_height = self._height
        won = action == "ring bell" and self._fault != "endless"
        self._over = won
        if self._fault == "early success" and self._height:
            return StepResult(self._look(), 1.0, success=True)
        reward = float("nan") if self._fault == "no number" and self._height else float(won)
        news = os.urandom(4).hex() if self._fault == "dice" else ""
        return StepResult(self._look(news), reward, terminated=won, success=won)

    def _refuse(self, action: str) -> StepResult:
        if self._fault == "nonsense raises":
            raise KeyError(action)
        if self._fault == "nonsense pays":
            return StepResult(self._look(), 0.1, refused=True)
        return StepResult(self._look("No. "), refused=self._fault != "never refuses")

    def expert(self) -> tuple[str, ...]:
        if self._fault in ("no expert", "endless"):
            return ()
        plan = ("climb",) * (LENGTH - self._height) + ("ring bell",)
        if self._fault == "lost expert" or (self._fault == "forgetful expert" and self._height):
            return plan[1:]
        return plan

    def close(self) -> None:
        """Nothing to let go of."""


class Tower:
    version = "tower 1"
    mapper = "as-is"

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = str(spec)
        self._fault = dict(spec.params).get("fault", "")
        self._stuck = self._fault == "stuck" and len(spec.params) > 1
        if self._fault not in ("any parameter", "stuck"):
            read_params(spec, {"fault": ""})
        self._listings = itertools.count()

    def tasks(self, split: Split) -> tuple[Task, ...]:
        first, fault, spec = FIRST[split], self._fault, self._spec
        if self._stuck:
            time.sleep(60)
        if fault == "nothing" or (fault == "no training" and split is Split.TRAIN):
            return ()
        if fault == "shared keys":
            return tuple(Task(f"{split}{n}", spec, str(n), split) for n in range(5))
        if fault == "same ids":
            return tuple(Task(f"#{n % 4}", spec, str(n), split) for n in range(first, first + 5))
        names = {"process ids": f"{os.getpid()}-", "changing ids": f"{next(self._listings)}-"}
        name = names.get(fault, "")
        world = "tower" if fault == "wrong world" else spec
        label = Split.TEST if fault == "wrong split" else split
        return tuple(
            Task(f"{spec}#{name}{n}", world, str(n), label) for n in range(first, first + 5)
        )

    def open(self, task: Task) -> Stairs:
        if self._fault != "any key" and not task.key.isdigit():
            raise ConfigError(f"'{task.key}' is no tower")
        if self._fault == "collapsed" and task.key.endswith("3"):
            raise RuntimeError("this tower fell down")
        return Stairs(task, self._fault)

    def entities(self, opening: Opening) -> frozenset[str]:
        return frozenset({"stair", "bell", opening.task.key[-1]})

    def close(self) -> None:
        """Nothing to let go of."""


def make_engine(spec: EnvSpec) -> Tower:
    return Tower(spec)
