"""Groups: the same task played several times by the same policy, many groups at once.

An episode is known beforehand by (run seed, step, slot, member): a step that is played again, after
a crash or elsewhere, is the same step. Results come in that order whatever finishes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.agents.behaviour import Behaviour
from dreamgym.errors import ConfigError
from dreamgym.experience.world import told_by
from dreamgym.protocols import World
from dreamgym.rollout.collect import Answerer, Slot, collect
from dreamgym.types import (
    Account,
    Origin,
    Provenance,
    Source,
    Step,
    Task,
    Trajectory,
    derive_seed,
    digest,
)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """How the groups of a step are played."""

    members: int = 8
    """Episodes of each task."""
    max_steps: int = 50
    concurrency: int = 64
    seed: int = 0
    """The seed of the whole run."""

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        for name in ("members", "max_steps", "concurrency"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")


@dataclass(frozen=True, slots=True)
class Group:
    """Episodes of one task, in the order of their members."""

    task: Task
    episodes: tuple[Trajectory, ...]


def plan_groups(
    tasks: Sequence[Task], behaviour: Behaviour, plan: GroupPlan, *, step: int, answerer: Answerer
) -> tuple[Slot, ...]:
    """Lay out the episodes of a step: all members of the first task, then of the second.

    The same task may come twice; its two groups are played with other seeds.
    """
    if not tasks:
        raise ConfigError("there are no tasks to play: the pool is empty")
    slots: list[Slot] = []
    for place, task in enumerate(tasks):
        for member in range(plan.members):
            parts = (task.id, behaviour.name, behaviour.settings, answerer.engine, plan)
            name = digest("|".join(map(str, parts)))
            provenance = Provenance(
                source=answerer.source,
                behaviour=behaviour.name,
                seed=derive_seed(plan.seed, "group", step, place, member),
                engine=answerer.engine,
                mapper=answerer.mapper,
            )
            slots.append(
                Slot(
                    index=len(slots),
                    task=task,
                    behaviour=behaviour,
                    max_steps=plan.max_steps,
                    trajectory_id=f"{name}-{step:05d}-{place:03d}-{member:03d}",
                    provenance=provenance,
                )
            )
    return tuple(slots)


async def play_groups(slots: Sequence[Slot], world: World, plan: GroupPlan) -> tuple[Group, ...]:
    """Play the episodes that `plan_groups` laid out, side by side."""
    played = [one async for one in collect(slots, world, concurrency=plan.concurrency)]
    firsts = range(0, len(slots), plan.members)
    return tuple(
        Group(slots[first].task, tuple(played[first : first + plan.members])) for first in firsts
    )


def ended_unknown(trajectory: Trajectory) -> bool:
    """Return whether a dream gave an episode up because nobody could tell what came next."""
    return bool(trajectory.steps) and origin_of(trajectory.steps[-1]) is Origin.UNKNOWN


def origin_of(step: Step) -> Origin:
    """Return who decided what a dream answered."""
    return told_by(Account(step.reasoning or ""))[0]


def group_figures(groups: Sequence[Group]) -> dict[str, float]:
    """Return what happened: `reward/*`, `episodes/*`, and `dream/*` where a dream answered.

    Episodes that failed or ended as unknown are counted, and are in no other figure.
    """
    every = [one for group in groups for one in group.episodes]
    sound = [one for one in every if one.error is None]
    known = [one for one in sound if not ended_unknown(one)]
    steps = [step for one in known for step in one.steps]
    count, turns = max(1, len(known)), max(1, len(steps))
    figures = {
        "reward/mean": sum(one.total_reward for one in known) / count,
        "reward/success": sum(one.success for one in known) / count,
        "episodes/played": float(len(every)),
        "episodes/failed": float(len(every) - len(sound)),
        "episodes/unknown": float(len(sound) - len(known)),
        "episodes/refused": sum(step.result.refused for step in steps) / turns,
        "episodes/length": len(steps) / count,
    }
    dreamt = [one for one in sound if one.provenance.source is Source.DREAM]
    origins = Counter(origin_of(step) for one in dreamt for step in one.steps)
    if dreamt:
        figures["dream/steps"] = float(origins.total())
        for origin in Origin:
            share = origins[origin] / max(1, origins.total())
            figures[f"dream/{origin.value.replace('-', '_')}"] = share
    return figures
