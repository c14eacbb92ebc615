"""TextWorldExpress as a DreamGym engine: tasks by split, games to play, an expert.

Specs are `twx/GAME?param=value`, such as `twx/coin?numLocations=6&includeDoors=0`; `games.py` lists
the parameters. One engine is one Java process; its games share it and give their places back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from dreamgym.envs.spec import EnvSpec
from dreamgym.envs.textworld_express.expert import Playout, play_on
from dreamgym.envs.textworld_express.games import place_of, read_settings
from dreamgym.envs.textworld_express.java import Answer, Jvm, Server, engine_version
from dreamgym.envs.textworld_express.mapper import MAPPER, entities, is_refusal, map_goal, map_state
from dreamgym.envs.textworld_express.sorting import SortingProblems
from dreamgym.envs.textworld_express.splits import Start, fold_of, seeds_of
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Observation, Opening, Split, StepResult, Task, digest

WALK = 500
"""Steps that the expert may take when tasks are told apart: the same for every `maxSteps`."""


def make_engine(spec: EnvSpec) -> TwxEngine:
    """Start the engine of a spec."""
    return TwxEngine(spec)


class TwxEngine:
    """One Java process with as many games of one kind as are wanted."""

    def __init__(self, spec: EnvSpec, *, jvm: Jvm | None = None) -> None:
        """Start Java, or move into a running one, which then stays its owner's to close."""
        self._spec = str(spec)
        self.settings = read_settings(spec)
        self._place = place_of(spec)
        self._version = engine_version()
        self._tasks: dict[Split, tuple[Task, ...]] = {}
        self._jvm = jvm or Jvm()
        self._owns_jvm = jvm is None
        self._idle: list[Server] = []
        self._gold: dict[tuple[str, int], tuple[str, ...]] = {}
        self._sorting = SortingProblems(self._jvm) if spec.name == "sorting" else None
        self._making = threading.Lock()
        try:
            self.give_back(self.borrow())
        except EnvError as error:
            self.close()
            raise ConfigError(f"{spec}: {error}") from error

    @property
    def version(self) -> str:
        """Name and version of the engine."""
        return self._version

    @property
    def pid(self) -> int:
        """The number of the Java process."""
        return self._jvm.pid

    @property
    def mapper(self) -> str:
        """Digest of the mapper."""
        return MAPPER

    def tasks(self, split: Split) -> Sequence[Task]:
        """List the tasks of a split."""
        if split not in self._tasks:
            fold = fold_of(self.settings, split)
            seeds = seeds_of(
                self.settings,
                split,
                version=self._version,
                start=self._start,
                walk=self._walk,
            )
            keys = [f"{fold}-{seed}" for seed in seeds]
            self._tasks[split] = tuple(
                Task(f"{self._place}#{key}", self._spec, key, split) for key in keys
            )
        return self._tasks[split]

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
        """End the Java process, if it is this engine's own, and every game in it."""
        if self._owns_jvm:
            self._jvm.close()

    def borrow(self) -> Server:
        """Hand out a place for a game."""
        if self._idle:
            return self._idle.pop()
        server = Server(self._jvm)
        server.load(self.settings.game, self.settings.engine_params)
        return server

    def generate(self, server: Server, fold: str, seed: int, *, gold: bool = False) -> Answer:
        """Make the game of a seed at a place, apart from every other game."""
        if self._sorting is None:
            return server.generate(seed, fold, gold=gold)
        with self._making:
            answer = server.generate(seed, fold, gold=gold)
            self._sorting.renew(fold, seed)
        return answer

    def play_on(self, fold: str, seed: int, past: Sequence[str], budget: int) -> Playout:
        """Win the game of a seed after some actions, at a place of its own."""
        server = self.borrow()
        try:
            return play_on(
                self.settings.game,
                server,
                begin=lambda: self.generate(server, fold, seed),
                gold=lambda: self._gold_path(server, fold, seed),
                past=past,
                budget=budget,
            )
        finally:
            self.give_back(server)

    def _gold_path(self, server: Server, fold: str, seed: int) -> tuple[str, ...]:
        """Return the engine's winning path, the same at every call, which the engine's is not."""
        if (fold, seed) not in self._gold:
            self.generate(server, fold, seed, gold=True)
            self._gold[fold, seed] = server.gold()
        return self._gold[fold, seed]

    def _start(self, fold: str, seed: int) -> Start:
        server = self.borrow()
        try:
            answer = self.generate(server, fold, seed)
            state = f"{map_goal(server.task_description())}\n{_text(self.settings.game, answer)}"
            objects = any(action.startswith("take ") for action in answer.valid)
            twc = self.settings.game == "twc" and self.settings.fold == "own"
            return Start(state, own=self.settings.folds_apart or (twc and objects))
        finally:
            self.give_back(server)

    def _walk(self, fold: str, seed: int) -> str:
        walk = self.play_on(fold, seed, (), WALK)
        # Where the expert knows no way, the seed stands for itself: a task too many, never too few.
        return digest("\n\n".join(walk.states) or str(seed))

    def give_back(self, server: Server) -> None:
        """Take a place back for the next game."""
        self._idle.append(server)


class TwxGame:
    """One episode."""

    def __init__(self, engine: TwxEngine, task: Task, *, fold: str, seed: int) -> None:
        self._engine = engine
        self._task = task
        self._fold = fold
        self._seed = seed
        self._game = engine.settings.game
        self._max_steps = engine.settings.max_steps
        self._server: Server | None = None
        self._answer: Answer | None = None
        self._steps = 0
        self._over = True
        self._past: list[str] = []
        self._plan: tuple[str, ...] | None = None

    @property
    def raw(self) -> Answer | None:
        """What the engine said last, in its own words."""
        return self._answer

    def reset(self, seed: int) -> Opening:
        """Start from the task's first state; the game has no chance in it, so any seed will do."""
        if self._server is None:
            self._server = self._engine.borrow()
        self._answer = self._engine.generate(self._server, self._fold, self._seed)
        self._steps = 0
        self._over = False
        self._past = []
        self._plan = None
        goal = map_goal(self._server.task_description())
        return Opening(replace(self._task, goal=goal), self._observation(self._answer))

    def step(self, action: str) -> StepResult:
        """Carry out one action, or answer as the engine answers what it refuses."""
        before = self._answer
        if self._server is None or before is None or self._over:
            raise EnvError(f"{self._task.id}: the episode is over; reset it first")
        if action not in before.valid:
            action = _spelt(action, before.valid)
        self._answer = answer = self._server.step(action)
        self._steps += 1
        terminated = answer.success or answer.failure
        truncated = not terminated and self._steps >= self._max_steps
        self._over = terminated or truncated
        refused = action not in before.valid or is_refusal(answer.observation)
        if not refused:
            self._past.append(action)
            self._plan = self._plan_after(action, before, answer)
        return StepResult(
            self._observation(answer),
            reward=answer.score - before.score,
            terminated=terminated,
            truncated=truncated,
            success=answer.success,
            refused=refused,
        )

    def expert(self) -> tuple[str, ...]:
        """Return actions that win from here in time, or nothing where no way is known."""
        if self._over:
            return ()
        budget = self._max_steps - self._steps
        if self._plan is None:
            playout = self._engine.play_on(self._fold, self._seed, self._past, budget)
            self._plan = playout.actions
        return self._plan if len(self._plan) <= budget else ()

    def close(self) -> None:
        """Give the game's place back."""
        if self._server is not None:
            self._engine.give_back(self._server)
            self._server = None
        self._over = True

    def _plan_after(self, action: str, before: Answer, after: Answer) -> tuple[str, ...] | None:
        """Return what is left of the plan; None if it has to be made anew."""
        if self._plan and self._plan[0] == action:
            return self._plan[1:]
        # Looking at things changes nothing; where nothing is to be seen, that cannot be told.
        looked = before.look and (before.look, before.inventory) == (after.look, after.inventory)
        return self._plan if looked else None

    def _observation(self, answer: Answer) -> Observation:
        return Observation(_text(self._game, answer), answer.valid)


def _text(game: str, answer: Answer) -> str:
    return map_state(game, answer.observation, answer.look, answer.inventory)


def _spelt(action: str, valid: tuple[str, ...]) -> str:
    """Return the valid action that differs only in case and spaces, else the action itself."""
    folded = " ".join(action.split()).lower()
    return next((one for one in valid if one.lower() == folded), action)
