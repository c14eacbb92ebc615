"""Episodes for comparison: the same task played twice, and where the two part.

Used by `contract.py`, which says what must be equal. Plays only through worlds and their workers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from dreamgym.envs.world import RealEnv, RealWorld
from dreamgym.types import Opening, Split, StepResult, Task, derive_seed

TURNS = 12
"""How long an episode for comparison is."""
SEED, OTHER_SEED = 7, 8


@dataclass(frozen=True, slots=True)
class Played:
    """What happened in an episode."""

    opening: Opening
    actions: tuple[str, ...]
    results: tuple[StepResult, ...]

    @property
    def ended(self) -> bool:
        """Whether the environment ended it."""
        return bool(self.results) and _ends(self.results[-1])


class Bench:
    """Two engines of one spec and some of its tasks."""

    def __init__(
        self,
        world: RealWorld,
        *,
        other: RealWorld,
        tasks: tuple[Task, ...],
        time_limit: float = 60.0,
    ) -> None:
        self.world = world
        self.time_limit = time_limit
        self.other = other
        self.tasks = tasks
        self._played: dict[str, Played] = {}

    async def played(self, task: Task) -> Played:
        """Return an episode of the task, alone in the other engine; always the same one."""
        if task.id not in self._played:
            env = await self.other.open(task)
            try:
                self._played[task.id] = await walk(env, derive_seed("walk", task.id))
            finally:
                await env.close()
        return self._played[task.id]


async def sample_tasks(world: RealWorld, count: int) -> tuple[Task, ...]:
    """Take tasks from the splits in turn: the first of each, then the second of each."""
    splits = [await world.tasks(split) for split in Split]
    longest = max(map(len, splits))
    turns = [split[place] for place in range(longest) for split in splits if place < len(split)]
    return tuple(turns[:count])


async def walk(env: RealEnv, seed: int) -> Played:
    """Play some turns: admissible actions by chance, else what the expert says, else just look."""
    rng = random.Random(seed)
    opening = await env.reset(SEED)
    now = opening.observation
    actions: list[str] = []
    results: list[StepResult] = []
    while len(results) < TURNS and not (results and _ends(results[-1])):
        if now.admissible:
            action = rng.choice(now.admissible)
        else:
            action = next(iter(await env.expert()), "look")
        actions.append(action)
        results.append(await env.step(action))
        now = results[-1].observation
    return Played(opening, tuple(actions), tuple(results))


async def follow(env: RealEnv, actions: tuple[str, ...]) -> tuple[StepResult, ...]:
    """Take the actions in turn, as long as the episode goes on."""
    results: list[StepResult] = []
    for action in actions:
        results.append(await env.step(action))
        if _ends(results[-1]):
            break
    return tuple(results)


async def repeat(env: RealEnv, played: Played) -> Played:
    """Play an episode again."""
    opening = await env.reset(SEED)
    return Played(opening, played.actions, await follow(env, played.actions))


def difference(one: Played, two: Played) -> str:
    """Return in words where two episodes part, or nothing."""
    if one.opening != two.opening:
        return f"began once with {_show(one.opening)} and once with {_show(two.opening)}"
    for turn, (left, right) in enumerate(zip(one.results, two.results, strict=False), start=1):
        if left != right:
            past = list(one.actions[:turn])
            return f"answered {past} once with {_show(left)} and once with {_show(right)}"
    if len(one.results) != len(two.results):
        return f"ended once after {len(one.results)} turns and once after {len(two.results)}"
    return ""


def _show(value: Opening | StepResult) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _ends(result: StepResult) -> bool:
    return result.terminated or result.truncated
