"""Many episodes side by side, with results in order whatever finishes first.

What an episode is (task, seed, who acts, its id) is fixed by its slot before anything runs, so a
resumed collection repeats nothing and equals one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dreamgym.agents.behaviour import Behaviour
from dreamgym.errors import AgentError, ConfigError, DreamGymError, EnvError, boundary
from dreamgym.in_order import in_order
from dreamgym.protocols import Env, World
from dreamgym.rollout.episode import failed_episode, run_episode
from dreamgym.rollout.start import CommonStart, Entry, StartingAgent
from dreamgym.types import Provenance, Source, Task, Trajectory, derive_seed, digest


@dataclass(frozen=True, slots=True)
class Slot:
    """One episode to be played: everything about it that is known beforehand."""

    index: int
    task: Task
    behaviour: Behaviour
    max_steps: int
    trajectory_id: str
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers the actions, as it goes into every record."""

    source: Source
    engine: str
    mapper: str


def plan_slots(
    tasks: Sequence[Task],
    *,
    episodes: int,
    behaviour: Callable[[int], Behaviour],
    answerer: Answerer,
    max_steps: int,
    seed: int,
) -> tuple[Slot, ...]:
    """Lay out the episodes: tasks in order, again from the first when they run out.

    A slot's seed and id depend on the settings and the slot alone, never on what ran before.
    """
    if not tasks:
        raise ConfigError("there are no tasks to play: the split is empty")
    slots = []
    for index in range(episodes):
        task, who = tasks[index % len(tasks)], behaviour(index)
        episode_seed = derive_seed(seed, index)
        # Everything the episode depends on goes into its id: two runs share an id only if they
        # would record the same trajectory.
        parts = (task.id, who.name, who.settings, answerer.engine, answerer.mapper, max_steps, seed)
        name = digest("|".join(map(str, parts)))
        provenance = Provenance(
            source=answerer.source,
            behaviour=who.name,
            seed=episode_seed,
            engine=answerer.engine,
            mapper=answerer.mapper,
        )
        slots.append(Slot(index, task, who, max_steps, f"{name}-{index:06d}", provenance))
    return tuple(slots)


def collect(
    slots: Iterable[Slot],
    world: World,
    *,
    concurrency: int,
    on_leftover: Callable[[Trajectory], None] = lambda trajectory: None,
) -> AsyncGenerator[Trajectory, None]:
    """Play the slots, many at a time, and yield their trajectories in slot order.

    When the caller stops early, episodes that are complete but wait for a slower one before them
    are handed to `on_leftover`.
    """
    start = CommonStart()
    jobs = (partial(_play, slot, world, start) for slot in slots)
    return in_order(jobs, concurrency=concurrency, on_leftover=on_leftover)


async def _play(slot: Slot, world: World, start: CommonStart) -> Trajectory:
    with start.awaited() as entry:
        try:
            with boundary(EnvError, "world.open"):
                env = await world.open(slot.task)
        except EnvError as failure:
            return _failed(slot, failure, "world.open")
        return await _play_in(env, slot, entry)


async def _play_in(env: Env, slot: Slot, entry: Entry) -> Trajectory:
    try:
        with boundary(AgentError, "agent.make"):
            agent = StartingAgent(slot.behaviour.make(env, slot.provenance.seed), entry)
        return await run_episode(
            env,
            agent,
            task=slot.task,
            trajectory_id=slot.trajectory_id,
            provenance=slot.provenance,
            max_steps=slot.max_steps,
        )
    except AgentError as failure:
        return _failed(slot, failure, "agent.make")
    finally:
        await env.close()


def _failed(slot: Slot, failure: DreamGymError, where: str) -> Trajectory:
    return failed_episode(
        failure,
        where,
        task=slot.task,
        trajectory_id=slot.trajectory_id,
        provenance=slot.provenance,
    )
