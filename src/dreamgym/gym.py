"""Dreams for Gymnasium: `gymnasium.make("dreamgym/Dream-v0", dream=FOLDER)` and `make_vec`.

Importing this module registers the environment: that is Gymnasium's way, which since its version 1
reads no entry points. `make("dreamgym.gym:dreamgym/Dream-v0", ...)` imports it by itself. States
and actions are texts. `make_vec` plays many episodes at once, answered in full batches.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.spaces import Text
from gymnasium.utils.seeding import np_random as make_generator
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dreamgym.config import DreamConfig
from dreamgym.dreams import Dream, named_task, open_dream
from dreamgym.errors import ConfigError, EnvError, did_you_mean
from dreamgym.experience.world import DreamEnv, told_by
from dreamgym.loop_thread import LoopThread
from dreamgym.types import Split, StepResult, Task

ID = "dreamgym/Dream-v0"
MAX_STEPS = 50
"""Steps after which Gymnasium cuts an episode off, unless `max_episode_steps` says otherwise."""
LONGEST_STATE, LONGEST_ACTION = 8192, 200
CHARACTERS = "\n" + "".join(filter(str.isprintable, map(chr, range(0x20, 0x180)))) + "–—‘’“”…•"  # noqa: RUF001 - they stand in texts
"""What texts are made of, as far as the spaces say; a state with others is only warned about."""
ON_FAILURE = ("raise", "truncate")

Result = TypeVar("Result")
Answer = tuple[str, float, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated, info."""


class OpenDream:
    """A dream that is open, for synchronous callers; several environments may share one.

    Args:
        dream: the run of a `dreamgym fit`, or a dream over a model of your own, as
            `dreams.dream_over` makes it; it is closed with this.
        store: the experience to remember with; by default the one that it was fitted on.
        settings: of the section `[dream]`, such as `{"min_confidence": 0.5}`.
    """

    def __init__(
        self,
        dream: str | Path | Dream,
        *,
        store: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(dream, Dream):
            _nothing_beside(Dream, store, settings)
            self._dream = dream
        else:
            remembered = Path(store) if store else None
            self._dream = open_dream(Path(dream), store=remembered, config=_config(settings or {}))
        self._tasks: dict[Split, tuple[Task, ...]] = {}
        self._loop = LoopThread()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something of this dream to its end."""
        return self._loop.run(work)

    async def open(self, task: Task) -> DreamEnv:
        """Open an episode."""
        return await self._dream.world.open(task)

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """Return the recorded tasks of a split."""
        if split not in self._tasks:
            self._tasks[split] = self._dream.tasks(split)
        return self._tasks[split]

    def metrics(self) -> dict[str, float]:
        """Return how many steps each origin decided so far."""
        return self._dream.world.metrics()

    def close(self) -> None:
        """Let go of model, store and thread."""
        if not self._loop.closed:
            self._loop.run(self._dream.close())
            self._loop.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> OpenDream:
        """Return itself: Gymnasium copies the arguments of `make`, and a model is not copied."""
        return self


class Chair:
    """Where one episode at a time is played: Gymnasium's words for what a dream answers."""

    def __init__(self, dream: OpenDream, tasks: Sequence[Task], *, on_failure: str) -> None:
        if on_failure not in ON_FAILURE:
            raise ConfigError(f"on_failure '{on_failure}'.{did_you_mean(on_failure, ON_FAILURE)}")
        self._dream, self._tasks, self._on_failure = dream, tasks, on_failure
        self._env: DreamEnv | None = None
        self.state = ""
        self.about: dict[str, Any] = {}

    def choose(self, generator: np.random.Generator, options: Mapping[str, Any] | None) -> Task:
        """Return the task of the next episode: drawn, or the one that `options` names."""
        wanted = dict(options or {})
        named = wanted.pop("task", None)
        if wanted:
            raise ConfigError(
                f"unknown option {sorted(wanted)}: reset knows options={{'task': ID}}"
            )
        drawn = self._tasks[int(generator.integers(len(self._tasks)))]
        return drawn if named is None else named_task(self._tasks, str(named), where="the split")

    async def reset(self, task: Task) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        self._env = await self._dream.open(task)
        opening = await self._env.reset(0)
        self.state = opening.observation.text
        self.about = {"task_id": opening.task.id, "goal": opening.task.goal}
        return self.state, dict(self.about)

    async def step(self, action: str) -> Answer:
        """Take one action."""
        if self._env is None:
            raise EnvError(
                "env.step: reset the environment first, the episode is over or not begun"
            )
        try:
            result = await self._env.step(str(action))
        except EnvError as error:
            self._env = None
            if self._on_failure == "raise":
                raise
            # Not zero: whoever overlooks the error must not take this for an answer.
            return self.state, math.nan, False, True, {**self.about, "error": str(error)}
        if result.terminated or result.truncated:
            self._env = None
        self.state = result.observation.text
        info = {**self.about, **_info(result)}
        return self.state, result.reward, result.terminated, result.truncated, info


class DreamTextEnv(gymnasium.Env[str, str]):
    """A dream as a Gymnasium environment.

    Without `task`, `reset` draws one of the recorded tasks of the split, by `seed` where one is
    given; `reset(options={"task": ID})` names one. `truncated` also means that the dream does not
    know: see `info["origin"]`.

    Args:
        dream: the run of a `dreamgym fit`, or an `OpenDream` to share.
        split: of the tasks.
        task: the id of the only task.
        store: see `OpenDream`.
        settings: see `OpenDream`.
        on_failure: what happens when no answer can be had. `raise` raises `EnvError`; `truncate`
            ends the episode with the reward NaN and `info["error"]`.
        render_mode: `ansi` makes `render` return goal and state.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self,
        dream: str | Path | OpenDream,
        *,
        split: str = "train",
        task: str | None = None,
        store: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        on_failure: str = "raise",
        render_mode: str | None = None,
    ) -> None:
        self._dream, self._own = _opened(dream, store, settings)
        tasks = playable(self._dream, split, task)
        self._chair = Chair(self._dream, tasks, on_failure=on_failure)
        self.observation_space, self.action_space = _spaces()
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        return self._dream.run(self._chair.reset(self._chair.choose(self.np_random, options)))

    def step(self, action: str) -> Answer:
        """Take one action."""
        return self._dream.run(self._chair.step(action))

    def render(self) -> str | None:
        """Return goal and state as a text, where `render_mode` is `ansi`."""
        if self.render_mode != "ansi":
            return None
        return f"Goal: {self._chair.about.get('goal', '')}\n{self._chair.state}"

    def close(self) -> None:
        """Close the dream, unless others share it."""
        if self._own:
            self._dream.close()


class DreamVectorEnv(VectorEnv[tuple[str, ...], Sequence[str], Any]):
    """Many episodes in one dream, side by side: all actions of a step are answered together.

    An episode that has ended begins anew with the next step, whose action it ignores (Gymnasium's
    `NEXT_STEP`). The arguments are those of `DreamTextEnv`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int,
        dream: str | Path | OpenDream,
        *,
        split: str = "train",
        task: str | None = None,
        store: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        on_failure: str = "raise",
        max_episode_steps: int = MAX_STEPS,
    ) -> None:
        self._dream, self._own = _opened(dream, store, settings)
        tasks = playable(self._dream, split, task)
        self._chairs = [Chair(self._dream, tasks, on_failure=on_failure) for _ in range(num_envs)]
        self._generators = [make_generator()[0] for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._limit = max_episode_steps
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Begin an episode in every place; a single seed counts up from place to place."""
        if seed is not None:
            seeds = seed if isinstance(seed, list) else [seed + n for n in range(self.num_envs)]
            self._generators = [make_generator(one)[0] for one in seeds]
        self._ended[:] = False
        self._steps[:] = 0
        places = zip(self._chairs, self._generators, strict=True)
        chosen = [chair.choose(generator, options) for chair, generator in places]

        async def all_at_once() -> list[tuple[str, dict[str, Any]]]:
            opened = zip(self._chairs, chosen, strict=True)
            return await asyncio.gather(*(chair.reset(task) for chair, task in opened))

        begun = self._dream.run(all_at_once())
        return tuple(state for state, _ in begun), self._gathered([info for _, info in begun])

    def step(self, actions: Sequence[str]) -> tuple[tuple[str, ...], Any, Any, Any, dict[str, Any]]:
        """Take one action in every place."""

        async def all_at_once() -> list[Answer]:
            places = enumerate(zip(self._chairs, actions, strict=True))
            return await asyncio.gather(*(self._one(n, c, action) for n, (c, action) in places))

        states, rewards, terminated, truncated, infos = zip(
            *self._dream.run(all_at_once()), strict=True
        )
        self._steps = np.where(self._ended, 0, self._steps + 1)
        cut = (self._steps >= self._limit) if self._limit > 0 else np.zeros_like(self._ended)
        over = np.array(truncated, dtype=np.bool_) | (cut & ~np.array(terminated, dtype=np.bool_))
        self._ended = np.array(terminated, dtype=np.bool_) | over
        return (
            tuple(states),
            np.array(rewards, dtype=np.float64),
            np.array(terminated, dtype=np.bool_),
            over,
            self._gathered(infos),
        )

    async def _one(self, place: int, chair: Chair, action: str) -> Answer:
        if not self._ended[place]:
            return await chair.step(action)
        state, info = await chair.reset(chair.choose(self._generators[place], None))
        return state, 0.0, False, False, info

    def _gathered(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        together: dict[str, Any] = {}
        for place, info in enumerate(infos):
            together = self._add_info(together, info, place)
        return together

    def close_extras(self, **kwargs: Any) -> None:
        """Close the dream, unless others share it."""
        if self._own:
            self._dream.close()


def playable(dream: OpenDream, split: str, task: str | None) -> tuple[Task, ...]:
    """Return the tasks that may be drawn."""
    if task is not None:
        everything = [one for each in Split for one in dream.tasks(each)]
        return (named_task(everything, task, where="the dream's store"),)
    if split not in list(Split):
        raise ConfigError(f"split '{split}'.{did_you_mean(split, Split)}")
    tasks = dream.tasks(Split(split))
    if not tasks:
        raise ConfigError(f"the dream's store has no task of the {split} split")
    return tasks


def _opened(
    dream: str | Path | OpenDream, store: str | Path | None, settings: Mapping[str, Any] | None
) -> tuple[OpenDream, bool]:
    """Return the dream, and whether whoever asks has to close it."""
    if not isinstance(dream, OpenDream):
        return OpenDream(dream, store=store, settings=settings), True
    _nothing_beside(OpenDream, store, settings)
    return dream, False


def _nothing_beside(
    kind: type, store: str | Path | None, settings: Mapping[str, Any] | None
) -> None:
    if store is not None or settings is not None:
        raise ConfigError(f"store and settings belong to the {kind.__name__} that was given")


def _config(settings: Mapping[str, Any]) -> DreamConfig:
    known = [field.name for field in fields(DreamConfig)]
    for name in settings:
        if name not in known:
            raise ConfigError(f"unknown setting dream.{name}.{did_you_mean(name, known)}")
    return DreamConfig(**settings)


def _spaces() -> tuple[Text, Text]:
    return Text(LONGEST_STATE, charset=CHARACTERS), Text(LONGEST_ACTION, charset=CHARACTERS)


def _info(result: StepResult) -> dict[str, Any]:
    origin, reasoning = told_by(result.account)
    return {
        "success": result.success,
        "refused": result.refused,
        "origin": str(origin),
        "reasoning": reasoning,
        "references": result.account.references if result.account else (),
    }


gymnasium.register(
    ID,
    entry_point="dreamgym.gym:DreamTextEnv",
    vector_entry_point="dreamgym.gym:DreamVectorEnv",
    max_episode_steps=MAX_STEPS,
)
