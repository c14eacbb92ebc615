"""The family `alfworld`: engine and games, over generated problems or the official ones.

Lives in a worker process. What is real here is upstream's; this module gives it our shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from dreamgym.envs.alfworld.expert import handcoded_plan
from dreamgym.envs.alfworld.game_text import TASK_TYPES, GameText, read_aim
from dreamgym.envs.alfworld.generate import SIZES, SMALLEST, Size
from dreamgym.envs.alfworld.generated import GeneratedGames, Recipe
from dreamgym.envs.alfworld.mapper import MAPPER_DIGEST, read_goal, read_places, render
from dreamgym.envs.alfworld.memo import install_memo
from dreamgym.envs.alfworld.official import OfficialGames, find_folder
from dreamgym.envs.alfworld.simulation import Simulation
from dreamgym.envs.alfworld.upstream import Upstream, load_upstream
from dreamgym.envs.alfworld.workshop import Workshop
from dreamgym.envs.spec import EnvSpec, Scalar, read_params
from dreamgym.errors import ConfigError, EnvError, did_you_mean
from dreamgym.protocols import Engine, Game
from dreamgym.types import Observation, Opening, Split, StepResult, Task

COMMON: dict[str, Scalar] = {"maxSteps": 50, "expert": "planner", "asides": False}
GENERATED: dict[str, Scalar] = COMMON | {
    "type": "all",
    "size": "small",
    "receptacles": 0,
    "objects": 0,
    "holdout": "starts",
    "train": 1200,
    "dev": 120,
    "test": 240,
}
OFFICIAL: dict[str, Scalar] = COMMON | {"path": ""}

_ASIDES = frozenset({"help", "inventory", "look"})
"""Commands that change nothing and tell nothing that a state does not say anyway."""
_LOOKING = ("examine ", "help", "inventory", "look")
"""Commands after which the world is as it was."""


class GameSource(Protocol):
    """Where games come from."""

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """List the tasks of a split."""

    def read(self, task: Task) -> GameText:
        """Return the game of a task."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How games are played, whatever their source."""

    max_steps: int = 50
    expert: str = "planner"
    asides: bool = False
    """Whether `help`, `inventory` and `look` are listed as admissible; they always work."""


class AlfworldEngine:
    """ALFWorld in this process."""

    def __init__(self, upstream: Upstream, source: GameSource, rules: Rules) -> None:
        self.source = source
        self._upstream = upstream
        self._rules = rules
        self._remove_memo = install_memo(upstream)
        self._workshop = Workshop(upstream)

    @property
    def version(self) -> str:
        """Name and version of the packages that make up ALFWorld."""
        return self._upstream.version

    @property
    def mapper(self) -> str:
        """Digest of the mapper."""
        return MAPPER_DIGEST

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """List the tasks of a split."""
        return self.source.tasks(split)

    def open(self, task: Task) -> Game:
        """Make a game of the task."""
        return AlfworldGame(self._workshop, self.source, self._rules, task)

    def entities(self, opening: Opening) -> frozenset[str]:
        """Name the types of receptacle in the room and the words of the goal that are things."""
        kinds = {place.rpartition(" ")[0] for place in read_places(opening.observation.text)}
        known = {kind.lower() for fits in self._upstream.holds.values() for kind in fits}
        known |= {kind.lower() for kind in self._upstream.affords["Toggleable"]} | kinds
        return frozenset(kinds | known.intersection(opening.task.goal.split()))

    def close(self) -> None:
        """Let go of what is loaded and take the memo back."""
        self._workshop.close()
        self._remove_memo()


class AlfworldGame:
    """One task in ALFWorld."""

    def __init__(self, workshop: Workshop, source: GameSource, rules: Rules, task: Task) -> None:
        self._workshop = workshop
        self._source = source
        self._rules = rules
        self._task = task
        self._simulation: Simulation | None = None
        self._seed = 0
        self._done: list[str] = []
        self._over = False
        self._plan: tuple[str, ...] = ()

    def reset(self, seed: int) -> Opening:
        """Start from the first state. ALFWorld has no chance in it; a seed moves only experts."""
        if self._simulation is None:
            read = self._source.read
            self._simulation = self._workshop.simulate(self._task.key, lambda: read(self._task))
        else:
            self._simulation.reset()
        self._seed, self._done, self._over = seed, [], False
        self._plan = self._simulation.house.text.walkthrough
        goal = read_goal(self._simulation.feedback)
        return Opening(replace(self._task, goal=goal), self._observe(self._simulation))

    def step(self, action: str) -> StepResult:
        """Carry out one command; what ALFWorld does not do, it answers with `Nothing happens.`."""
        simulation = self._playing()
        if self._over:
            raise EnvError(f"{self._task.id} is over; reset it before the next step")
        # All commands are in small letters with single spaces; other spellings mean the same.
        command = " ".join(action.lower().split())
        accepted = simulation.step(command)
        if accepted and self._plan[:1] == (command,):
            self._plan = self._plan[1:]
        elif accepted and not command.startswith(_LOOKING):
            self._plan = ()
        self._done.append(command)
        won = simulation.won
        truncated = not won and len(self._done) >= self._rules.max_steps
        self._over = won or truncated
        return StepResult(
            self._observe(simulation),
            reward=1.0 if won else 0.0,
            terminated=won,
            truncated=truncated,
            success=won,
            refused=not accepted,
        )

    def expert(self) -> tuple[str, ...]:
        """Return commands that win from here, from the expert that the spec names."""
        simulation = self._playing()
        if self._over:
            return ()
        if self._rules.expert == "handcoded":
            return self._handcoded(simulation)
        self._plan = self._plan or self._workshop.planner.plan(simulation)
        return self._plan

    def close(self) -> None:
        """Hand the search library on."""
        if self._simulation is not None:
            self._workshop.take_back(self._simulation)
            self._simulation = None

    def _handcoded(self, simulation: Simulation) -> tuple[str, ...]:
        aim = read_aim(simulation.house.text.problem)
        if aim is None:
            return ()
        left = self._rules.max_steps - len(self._done)
        return handcoded_plan(simulation, aim, self._done, limit=left, seed=self._seed)

    def _playing(self) -> Simulation:
        if self._simulation is None:
            raise EnvError(f"{self._task.id} has not been reset")
        return self._simulation

    def _observe(self, simulation: Simulation) -> Observation:
        commands = simulation.commands
        if not self._rules.asides:
            commands = [command for command in commands if command not in _ASIDES]
        return Observation(render(simulation.view()), tuple(commands))


def make_engine(spec: EnvSpec) -> Engine:
    """Make the engine of `alfworld/generated` or `alfworld/official`."""
    kinds = {"generated": GENERATED, "official": OFFICIAL}
    if spec.name not in kinds:
        hint = did_you_mean(spec.name, kinds)
        raise ConfigError(f"'{spec}': there is no '{spec.name}' in alfworld.{hint}")
    params = read_params(spec, kinds[spec.name])
    rules = Rules(
        _at_least(spec, params, "maxSteps", 1),
        _one_of(spec, params, "expert", ("planner", "handcoded")),
        bool(params["asides"]),
    )
    if spec.name == "official":
        folder = find_folder(str(params["path"]))
        source: GameSource = OfficialGames(str(spec), folder)
        return AlfworldEngine(load_upstream(), source, rules)
    recipe = _read_recipe(spec, params)
    upstream = load_upstream()
    return AlfworldEngine(upstream, GeneratedGames(str(spec), upstream, recipe), rules)


def _read_recipe(spec: EnvSpec, params: dict[str, Scalar]) -> Recipe:
    kind = _one_of(spec, params, "type", ("all", *TASK_TYPES))
    usual = SIZES[_one_of(spec, params, "size", tuple(SIZES))]
    size = Size(
        _at_least(spec, params, "receptacles", SMALLEST.receptacles, or_zero=usual.receptacles),
        _at_least(spec, params, "objects", SMALLEST.objects, or_zero=usual.objects),
    )
    return Recipe(
        types=TASK_TYPES if kind == "all" else (kind,),
        size=size,
        hold_out_objects=_one_of(spec, params, "holdout", ("starts", "objects")) == "objects",
        counts=tuple((split, _at_least(spec, params, split.value, 0)) for split in Split),
    )


def _one_of(spec: EnvSpec, params: dict[str, Scalar], key: str, known: tuple[str, ...]) -> str:
    value = str(params[key])
    if value not in known:
        raise ConfigError(f"{spec}: {key} cannot be '{value}'.{did_you_mean(value, known)}")
    return value


def _at_least(
    spec: EnvSpec, params: dict[str, Scalar], key: str, least: int, *, or_zero: int | None = None
) -> int:
    value = int(params[key])
    if value == 0 and or_zero is not None:
        return or_zero
    if value < least:
        raise ConfigError(f"{spec}: {key} is at least {least}, not {value}")
    return value
