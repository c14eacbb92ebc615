"""The same actions again in another world: what on-policy and closed-loop measures stand on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dreamgym.errors import EnvError, boundary
from dreamgym.experience.world import DreamWorld
from dreamgym.in_order import in_order
from dreamgym.protocols import Env, Retriever, World
from dreamgym.rollout.episode import failed_episode, run_episode
from dreamgym.rollout.groups import ended_unknown
from dreamgym.types import Action, Observation, Source, Step, Task, Trajectory


@dataclass(frozen=True, slots=True)
class Pair:
    """One sequence of actions in both worlds."""

    dream: Trajectory
    real: Trajectory

    @property
    def failed(self) -> bool:
        """Whether one of the two broke: then the pair says nothing."""
        return self.dream.error is not None or self.real.error is not None

    @property
    def unknown(self) -> bool:
        """Whether the dream ended because it did not know."""
        return ended_unknown(self.dream)

    @property
    def counts(self) -> bool:
        """Whether outcomes can be compared."""
        return not self.failed and not self.unknown


class Retelling:
    """An agent that does what was done before."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._actions = [step.action for step in steps]

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return the next of the recorded actions."""
        return self._actions[len(past)]


async def retell_in_dream(
    told: Sequence[Trajectory],
    dream: DreamWorld,
    *,
    memory: Retriever | None,
    concurrency: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[Trajectory, ...]:
    """Play the actions of real trajectories in the dream, from the same openings.

    A trajectory is never retrieved for its own retelling.
    """

    async def again(one: Trajectory) -> Trajectory:
        env = await dream.open(as_dreamed(one), memory, without=one.id)
        return await _again(one, env, as_dreamed(one), Source.DREAM)

    return await _all(told, again, concurrency=concurrency, on_progress=on_progress)


async def retell_for_real(
    told: Sequence[Trajectory],
    world: World,
    *,
    concurrency: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[Trajectory, ...]:
    """Play the actions of dreamed trajectories in the real world, from the same task and seed."""

    async def again(one: Trajectory) -> Trajectory:
        task = replace(one.task, first_state=None, goal="")
        try:
            with boundary(EnvError, "world.open"):
                env = await world.open(task)
        except EnvError as failure:
            by = replace(one.provenance, source=Source.REAL)
            return failed_episode(
                failure, "world.open", task=task, trajectory_id=one.id, provenance=by
            )
        return await _again(one, env, task, Source.REAL)

    return await _all(told, again, concurrency=concurrency, on_progress=on_progress)


def as_dreamed(real: Trajectory) -> Task:
    """Return the task of a real trajectory with the opening that it had."""
    return replace(real.task, first_state=real.opening.text)


async def _again(one: Trajectory, env: Env, task: Task, source: Source) -> Trajectory:
    try:
        return await run_episode(
            env,
            Retelling(one.steps),
            task=task,
            trajectory_id=one.id,
            provenance=replace(one.provenance, source=source),
            max_steps=len(one.steps),
        )
    finally:
        await env.close()


async def _all(
    told: Sequence[Trajectory],
    again: Callable[[Trajectory], Coroutine[Any, Any, Trajectory]],
    *,
    concurrency: int,
    on_progress: Callable[[int], None],
) -> tuple[Trajectory, ...]:
    jobs = [partial(again, one) for one in told]
    done: list[Trajectory] = []
    async for trajectory in in_order(jobs, concurrency=concurrency):
        done.append(trajectory)
        on_progress(len(done))
    return tuple(done)
