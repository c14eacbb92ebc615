"""The family `gym`: any Gymnasium environment whose observations and actions are texts.

`gym/MyEnv-v0?import=my_package.my_env` imports the module that registers `MyEnv-v0` and plays it.
A task is a seed; what Gymnasium has no word for is read from `info`, under the names in `KEYS`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium.spaces import Text

from dreamgym.envs.own import import_module
from dreamgym.envs.seeded import COUNTS, FIRST_SEED, read_seed, seeded_tasks
from dreamgym.envs.spec import EnvSpec, Scalar, read_params
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Observation, Opening, Split, StepResult, Task, digest

GymEnv = gymnasium.Env[Any, Any]

KEYS: dict[str, tuple[str, ...]] = {
    "success": ("success", "is_success"),
    "admissible": ("admissible_actions", "valid_actions"),
    "goal": ("goal", "task"),
    "refused": ("refused", "invalid_action"),
}
"""Under which names `info` may tell what DreamGym wants to know, first come first served."""

DEFAULTS: dict[str, Scalar] = {
    "import": "",
    "max_steps": 0,
    "success": "info",
    **{split.value: count for split, count in COUNTS.items()},
}
MAPPER = digest("gym: observations as the environment gives them, 1")
MAKE = "make."


@dataclass(frozen=True, slots=True)
class GymSettings:
    """The parameters of a spec. Those that begin with `make.` go to the environment itself."""

    name: str
    module: str
    """Imported first, so that it registers the environment (`import=`)."""
    max_steps: int
    """Truncates episodes; 0 leaves it to the environment."""
    success: str
    """`info`: the environment says so. `reward`: a positive last reward means success."""
    counts: Mapping[Split, int]
    """How many tasks each split has (`train=`, `dev=`, `test=`)."""
    arguments: Mapping[str, Any]
    """What goes to the environment (`make.size=5`)."""


def make_engine(spec: EnvSpec) -> GymEngine:
    """Make the engine of a spec, after a look at whether the environment speaks text."""
    settings = read_settings(spec)
    if settings.module:
        import_module(settings.module)
    return GymEngine(spec, settings)


def read_settings(spec: EnvSpec) -> GymSettings:
    """Read a spec's parameters."""
    if not spec.name:
        raise ConfigError("'gym' names no environment; write gym/ID, such as gym/MyEnv-v0")
    theirs = {key: text for key, text in spec.params if key.startswith(MAKE)}
    own = replace(spec, params=tuple(pair for pair in spec.params if pair[0] not in theirs))
    params = read_params(own, DEFAULTS)
    if params["success"] not in ("info", "reward"):
        raise ConfigError(f"{spec}: success is 'info' or 'reward', not '{params['success']}'")
    if int(params["max_steps"]) < 0:
        raise ConfigError(f"{spec}: max_steps={params['max_steps']} is less than nothing")
    return GymSettings(
        name=spec.name,
        module=str(params["import"]),
        max_steps=int(params["max_steps"]),
        success=str(params["success"]),
        counts={split: int(params[split.value]) for split in Split},
        arguments={key.removeprefix(MAKE): _literal(text) for key, text in theirs.items()},
    )


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _check_text(spec: EnvSpec, env: GymEnv) -> None:
    """Refuse an environment that does not take and give texts."""
    wrap = "wrap the environment so that they are, and register the wrapped one"
    if not isinstance(env.action_space, Text) and not isinstance(env.action_space.sample(), str):
        raise ConfigError(f"{spec}: actions are {env.action_space} and must be texts; {wrap}")
    text, _ = env.reset(seed=FIRST_SEED[Split.TRAIN])
    if not isinstance(text, str):
        space = f"observations are {env.observation_space}, such as {text!r:.60},"
        raise ConfigError(f"{spec}: {space} and must be texts; {wrap}")


class GymEngine:
    """Makes one Gymnasium environment per game."""

    def __init__(self, spec: EnvSpec, settings: GymSettings) -> None:
        self._spec = str(spec)
        self._settings = settings
        self._sample = self.make()
        """Never played: it answers what belongs to no episode."""
        _check_text(spec, self._sample)

    @property
    def version(self) -> str:
        """Name and version of the engine."""
        return f"{self._settings.name} (gymnasium {gymnasium.__version__})"

    @property
    def mapper(self) -> str:
        """Digest of the mapper, which changes nothing."""
        return MAPPER

    def make(self) -> GymEnv:
        """Make an environment. Raises `ConfigError` when there is none of that name."""
        settings = self._settings
        limit = {"max_episode_steps": settings.max_steps} if settings.max_steps else {}
        try:
            # Gymnasium's own checker would warn about every text with a space in it.
            return gymnasium.make(
                settings.name, disable_env_checker=True, **limit, **settings.arguments
            )
        except gymnasium.error.UnregisteredEnv as error:
            near = difflib.get_close_matches(settings.name, gymnasium.registry, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            add = "" if settings.module else "; ?import=MODULE names the module that registers it"
            raise ConfigError(
                f"Gymnasium knows no environment '{settings.name}'.{hint} {error}{add}"
            ) from error
        except TypeError as error:
            if not settings.arguments:
                raise
            raise ConfigError(f"{self._spec}: {error}; check the make. parameters") from error

    def tasks(self, split: Split) -> Sequence[Task]:
        """List the tasks of a split: one per seed."""
        return seeded_tasks(self._spec, split, count=self._settings.counts[split])

    def open(self, task: Task) -> GymGame:
        """Make a game of the task."""
        seed = read_seed(task)
        return GymGame(self.make(), task, seed=seed, success=self._settings.success)

    def entities(self, opening: Opening) -> frozenset[str]:
        """Ask the environment's own `entities(text)`; none are known where it has none."""
        name_them = getattr(self._sample.unwrapped, "entities", None)
        return frozenset(name_them(opening.observation.text) if name_them else ())

    def close(self) -> None:
        """Close what no game holds."""
        self._sample.close()


class GymGame:
    """One episode in an environment of its own."""

    def __init__(self, env: GymEnv, task: Task, *, seed: int, success: str) -> None:
        self._env = env
        self._task = task
        self._seed = seed
        self._success = success
        self._admissible: tuple[str, ...] | None = None

    def reset(self, seed: int) -> Opening:
        """Start from the task's own seed; Gymnasium has no second source of chance."""
        text, info = self._env.reset(seed=self._seed)
        task = replace(self._task, goal=str(_read(info, "goal", "")))
        return Opening(task, self._observe(text, info))

    def step(self, action: str) -> StepResult:
        """Carry out one action."""
        before = self._admissible
        text, reward, terminated, truncated, info = self._env.step(action)
        # Who lists what is accepted and says no more refuses everything else.
        unlisted = before is not None and action not in before
        return StepResult(
            self._observe(text, info),
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated),
            success=bool(terminated) and self._achieved(float(reward), info),
            refused=bool(_read(info, "refused", unlisted)),
        )

    def _achieved(self, reward: float, info: Mapping[str, Any]) -> bool:
        told = _read(info, "success", None)
        if told is not None:
            return bool(told)
        if self._success == "reward":
            return reward > 0
        raise EnvError(
            f"{self._task.env} ended a task without info['success'], so nobody knows whether it "
            "was achieved; set it, or add success=reward if a positive last reward means success"
        )

    def _observe(self, text: object, info: Mapping[str, Any]) -> Observation:
        if not isinstance(text, str):
            raise EnvError(f"an observation is a text, this is {text!r:.80}")
        listed = _read(info, "admissible", None)
        self._admissible = None if listed is None else tuple(sorted(map(str, listed)))
        return Observation(text, self._admissible)

    def expert(self) -> tuple[str, ...]:
        """Ask the environment's own `expert()`, where it has one."""
        advise = getattr(self._env.unwrapped, "expert", None)
        return tuple(advise()) if advise else ()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def _read(info: Mapping[str, Any], what: str, default: Any) -> Any:
    return next((info[key] for key in KEYS[what] if key in info), default)
