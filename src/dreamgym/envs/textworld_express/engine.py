"""TextWorldExpress as a DreamGym engine: tasks by split, games to play, an expert.

Specs are `twx/GAME?param=value`, such as `twx/coin?numLocations=6&includeDoors=0`; `games.py` lists
the parameters. One engine is one Java process; its games share it and give their places back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dreamgym.envs.spec import EnvSpec
from dreamgym.envs.textworld_express.games import GameSettings, read_settings
from dreamgym.envs.textworld_express.java import Jvm, Server, engine_version
from dreamgym.envs.textworld_express.mapper import MAPPER, entities, is_refusal, map_goal, map_state
from dreamgym.envs.textworld_express.sorting import SortingProblems
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Observation, Opening, Split, StepResult, Task

FIRST_SEED = {Split.TRAIN: 0, Split.DEV: 10_000, Split.TEST: 20_000}


def make_engine(spec: EnvSpec) -> TwxEngine:
    """Start the engine of a spec."""
    return TwxEngine(spec)


class TwxEngine:
    """One Java process with as many games of one kind as are wanted."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = str(spec)
        self.settings = read_settings(spec)
        self._version = engine_version()
        self._jvm = Jvm()
        self._idle: list[Server] = []
        self._sorting = SortingProblems(self._jvm) if spec.name == "sorting" else None

    @property
    def version(self) -> str:
        """Name and version of the engine."""
        return self._version

    @property
    def mapper(self) -> str:
        """Digest of the mapper."""
        return MAPPER

    def tasks(self, split: Split) -> Sequence[Task]:
        """List the tasks of a split."""
        first = FIRST_SEED[split]
        fold = split.value if self.settings.fold == "own" else self.settings.fold
        keys = [f"{fold}-{first + index}" for index in range(self.settings.counts[split])]
        return tuple(Task(f"{self._spec}#{key}", self._spec, key, split) for key in keys)

    def open(self, task: Task) -> TwxGame:
        """Make a game of the task."""
        fold, _, seed = task.key.partition("-")
        if fold not in ("train", "dev", "test") or not seed.isdigit():
            raise ConfigError(f"task {task.id}: '{task.key}' is no key of {self._spec}")
        return TwxGame(self, task, fold=fold, seed=int(seed))

    def entities(self, opening: Opening) -> frozenset[str]:
        """Name the rooms and things that an opening shows."""
        return entities(opening.task.goal, opening.observation.text)

    def close(self) -> None:
        """End the Java process and every game in it."""
        self._jvm.close()

    def borrow(self) -> Server:
        """Hand out a place for a game."""
        if self._idle:
            return self._idle.pop()
        server = Server(self._jvm)
        server.load(self.settings.game, self.settings.engine_params)
        return server

    def generate(self, server: Server, fold: str, seed: int, *, gold: bool = False) -> str:
        """Make the game of a seed at a place, apart from every other game."""
        answer = server.generate(seed, fold, gold=gold)
        if self._sorting is not None:
            self._sorting.renew(fold, seed)
        return answer

    def give_back(self, server: Server) -> None:
        """Take a place back for the next game."""
        self._idle.append(server)


class TwxGame:
    """One episode."""

    def __init__(self, engine: TwxEngine, task: Task, *, fold: str, seed: int) -> None:
        self._engine = engine
        self._settings: GameSettings = engine.settings
        self._task = task
        self._fold = fold
        self._seed = seed
        self._server: Server | None = None
        self._valid: tuple[str, ...] = ()
        self._score = 0.0
        self._steps = 0
        self._over = True
        self._plan: tuple[str, ...] | None = None

    def reset(self, seed: int) -> Opening:
        """Start from the task's first state; the game has no chance in it, so any seed will do."""
        import orjson

        if self._server is None:
            self._server = self._engine.borrow()
        answer = orjson.loads(self._engine.generate(self._server, self._fold, self._seed))
        goal = map_goal(self._server.task_description())
        self._valid = tuple(sorted(answer["validActions"]))
        self._score = answer["score"]
        self._steps = 0
        self._over = False
        self._plan = None
        text = map_state(
            self._settings.game, answer["observation"], answer["look"], answer["inventory"]
        )
        return Opening(replace(self._task, goal=goal), Observation(text, self._valid))

    def step(self, action: str) -> StepResult:
        """Carry out one action, or answer as the engine answers what it refuses."""
        import orjson

        if self._server is None or self._over:
            raise EnvError(f"{self._task.id}: the episode is over; reset it first")
        if action not in self._valid:
            folded = " ".join(action.split()).lower()
            action = next((one for one in self._valid if one.lower() == folded), action)
        known = action in self._valid
        answer = orjson.loads(self._server.step(action))
        self._steps += 1
        self._valid = tuple(sorted(answer["validActions"]))
        reward = answer["score"] - self._score
        self._score = answer["score"]
        success = answer["tasksuccess"]
        terminated = success or answer["taskfailure"]
        truncated = not terminated and self._steps >= self._settings.max_steps
        self._over = terminated or truncated
        if self._plan is not None:
            self._plan = self._plan[1:] if self._plan[:1] == (action,) else ()
        text = map_state(
            self._settings.game, answer["observation"], answer["look"], answer["inventory"]
        )
        return StepResult(
            Observation(text, self._valid),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            success=success,
            refused=not known or is_refusal(answer["observation"]),
        )

    def expert(self) -> tuple[str, ...]:
        """Return actions that win from here, or nothing where no way is known."""
        if self._over:
            return ()
        if self._plan is None and self._steps == 0:
            server = self._engine.borrow()
            self._engine.generate(server, self._fold, self._seed, gold=True)
            self._plan = server.gold()
            self._engine.give_back(server)
        return self._plan or ()

    def close(self) -> None:
        """Give the game's place back."""
        if self._server is not None:
            self._engine.give_back(self._server)
            self._server = None
        self._over = True
