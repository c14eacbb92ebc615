"""THE training loop: tasks, groups, credit, an update, figures, a look at reality, a checkpoint.

Where the groups are played, by which algorithm they are judged and who picks the tasks are
arguments; reality in place of a dream is another `World`, nothing else. What happens in a step is
decided by weights, optimiser and (seed, step) alone, so a loop that was killed goes on from its
last checkpoint as if nothing had been.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.errors import ConfigError
from dreamgym.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from dreamgym.protocols import World
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import Group, GroupPlan, group_figures, plan_groups, play_groups
from dreamgym.train.algorithms import Algorithm
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.tokens import Rewarding, outcome_rewards
from dreamgym.train.update import Learner
from dreamgym.train.weave import token_groups
from dreamgym.types import Source, Task, derive_seed

Figures = dict[str, float]


class TaskSampler(Protocol):
    """Picks what is practised."""

    def draw(self, step: int, count: int) -> tuple[Task, ...]:
        """Return the tasks of a step. The same step, after the same past, gets the same tasks."""

    def observe(self, groups: Sequence[Group]) -> Figures:
        """Take note of what came of them; return figures, under `tasks/`."""

    def state(self) -> dict[str, Any]:
        """Return all that was noted, as JSON holds it."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""


class UniformTasks:
    """Draws from a pool, each task as likely as any other, none twice while there are others."""

    def __init__(self, pool: Sequence[Task], *, seed: int = 0) -> None:
        if not pool:
            raise ConfigError("there are no tasks to practise: the pool is empty")
        self._pool, self._seed = tuple(pool), seed

    def draw(self, step: int, count: int) -> tuple[Task, ...]:
        """Return `count` tasks; where the pool is smaller, it is gone through again."""
        rng = random.Random(derive_seed(self._seed, "tasks", step))
        drawn: list[Task] = []
        while len(drawn) < count:
            drawn += rng.sample(self._pool, min(count - len(drawn), len(self._pool)))
        return tuple(drawn)

    def observe(self, groups: Sequence[Group]) -> Figures:
        """Learn nothing from it."""
        return {"tasks/pool": float(len(self._pool))}

    def state(self) -> dict[str, Any]:
        """Return nothing: steps do not depend on one another."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Trainee:
    """Who learns, and how."""

    behaviour: Behaviour
    """Makes agents over the very model that the learner changes."""
    writer: CompactWriter
    """How those agents write."""
    learner: Learner
    algorithm: Algorithm
    objective: PolicyObjective = field(default_factory=PolicyObjective)


@dataclass(frozen=True, slots=True)
class Practice:
    """Where it learns, and what it practises."""

    world: World
    answerer: Answerer
    tasks: TaskSampler
    rewards: Rewarding = outcome_rewards
    learn_unknown: bool = False
    """Whether an episode that a dream gave up counts as one without reward; else it is left out."""


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How long, and in what portions."""

    steps: int
    groups: int = 12
    """Tasks per step."""
    play: GroupPlan = field(default_factory=GroupPlan)
    learning_rate: float = 3e-4
    warmup_steps: int = 5
    """Steps over which the learning rate rises; then it stays."""
    probe_every: int = 10
    """Steps between looks at reality; the first is before any step, the last after all."""
    checkpoint_every: int = 1

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        for name in ("steps", "groups", "probe_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.learning_rate * min(1.0, (step + 1) / max(1, self.warmup_steps))


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look at reality found."""

    success: float
    """By which the best policy is chosen."""
    transitions: int
    """Real steps that it took."""
    figures: Mapping[str, float] = field(default_factory=dict)


Probe = Callable[[], Awaitable[Sight]]
"""Plays the policy as it is now on tasks that it does not practise."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a loop has come: with weights and optimiser, all that it goes on from."""

    step: int = 0
    """Steps made."""
    real_steps: int = 0
    """Real transitions that were practised on."""
    dream_steps: int = 0
    probe_steps: int = 0
    """Real transitions that looks at reality took."""
    best_step: int = -1
    best_success: float = -1.0
    probes: tuple[dict[str, float], ...] = ()
    """What each look found, with its step."""


OnRow = Callable[[Progress, Figures], None]


async def run_loop(
    trainee: Trainee,
    practice: Practice,
    plan: LoopPlan,
    *,
    probe: Probe | None = None,
    keep_best: Callable[[], None] = lambda: None,
    folder: Path | None = None,
    on_row: OnRow = lambda progress, figures: None,
) -> Progress:
    """Train until the plan is fulfilled.

    Args:
        trainee: who learns.
        practice: where.
        plan: how long.
        probe: looks at reality.
        keep_best: called when a look finds the policy better than all before; keeps its weights.
        folder: for checkpoints. Where it holds one, training goes on from there.
        on_row: gets the figures of each step; steps after a checkpoint come again after a crash.
    """
    progress = _restore(trainee, practice, folder)
    if probe is not None and not progress.probes:
        progress, seen = await _look(progress, probe, keep_best)
        on_row(progress, seen)
    while progress.step < plan.steps:
        progress, figures = await make_step(trainee, practice, plan, progress)
        last = progress.step == plan.steps
        if probe is not None and (last or progress.step % plan.probe_every == 0):
            progress, seen = await _look(progress, probe, keep_best)
            figures |= seen
        on_row(progress, figures)
        if folder is not None and (last or progress.step % plan.checkpoint_every == 0):
            state = {"progress": asdict(progress), "tasks": practice.tasks.state()}
            save_checkpoint(folder, Checkpoint(progress.step, trainee.learner.tensors(), state))
    return progress


async def make_step(
    trainee: Trainee, practice: Practice, plan: LoopPlan, progress: Progress
) -> tuple[Progress, Figures]:
    """Play groups and learn from them, once."""
    step, began = progress.step, time.monotonic()
    tasks = practice.tasks.draw(step, plan.groups)
    slots = plan_groups(tasks, trainee.behaviour, plan.play, step=step, answerer=practice.answerer)
    groups = await play_groups(slots, practice.world, plan.play)
    played = time.monotonic()
    figures = {**group_figures(groups), **_learn(trainee, practice, groups, plan.rate(step), step)}
    figures |= practice.tasks.observe(groups)
    taken = sum(len(one.steps) for group in groups for one in group.episodes)
    real = practice.answerer.source is Source.REAL
    progress = replace(
        progress,
        step=step + 1,
        real_steps=progress.real_steps + (taken if real else 0),
        dream_steps=progress.dream_steps + (0 if real else taken),
    )
    figures["real/steps_online"] = float(progress.real_steps)
    figures["time/rollout"] = played - began
    figures["time/update"] = time.monotonic() - played
    return progress, figures


def _learn(
    trainee: Trainee, practice: Practice, groups: Sequence[Group], rate: float, step: int
) -> Figures:
    told = token_groups(
        groups,
        trainee.writer,
        rewards=practice.rewards,
        learn_unknown=practice.learn_unknown,
    )
    learner, algorithm = trainee.learner, trainee.algorithm
    values = learner.values(told) if algorithm.needs_values else None
    credit = algorithm.credit(told, values)
    figures = dict(credit.metrics)
    if credit.episodes:
        figures |= learner.improve(credit, trainee.objective, step=step, learning_rate=rate)
    alike = figures.get("credit/groups_without_variance", 0.0)
    figures["groups/no_variance"] = alike / max(1, len(groups))
    return figures


async def _look(
    progress: Progress, probe: Probe, keep_best: Callable[[], None]
) -> tuple[Progress, Figures]:
    began = time.monotonic()
    sight = await probe()
    figures = {**sight.figures, "real/success": sight.success}
    better = sight.success > progress.best_success
    if better:
        keep_best()
    progress = replace(
        progress,
        probe_steps=progress.probe_steps + sight.transitions,
        best_step=progress.step if better else progress.best_step,
        best_success=max(sight.success, progress.best_success),
        probes=(*progress.probes, {"step": float(progress.step), **figures}),
    )
    figures["real/steps_probes"] = float(progress.probe_steps)
    figures["time/probe"] = time.monotonic() - began
    return progress, figures


def _restore(trainee: Trainee, practice: Practice, folder: Path | None) -> Progress:
    found = load_checkpoint(folder) if folder is not None else None
    if found is None:
        return Progress()
    trainee.learner.load_tensors(found.tensors)
    practice.tasks.restore(found.state["tasks"])
    plain = found.state["progress"]
    return Progress(**{**plain, "probes": tuple(plain["probes"])})
