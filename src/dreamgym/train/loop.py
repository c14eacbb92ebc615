"""THE training loop: tasks, groups, credit, an update, figures, a look at reality, a checkpoint.

Where the groups are played, by which algorithm they are judged and who picks the tasks are
arguments; reality in place of a dream is another `World`, nothing else, also when it takes a
dream's place on the way. What happens in a step is decided by weights, optimiser and (seed, step)
alone, so a loop that was killed goes on from its last checkpoint as if nothing had been.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_tokens import Writer
from dreamgym.errors import ConfigError, EnvError
from dreamgym.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from dreamgym.protocols import World
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import Group, GroupPlan, group_figures, plan_groups, play_groups
from dreamgym.train.algorithms import Algorithm
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.progress import Figures, Probe, Progress, Sight, Turn, Watch, read_progress
from dreamgym.train.tokens import Rewarding, outcome_rewards
from dreamgym.train.transfer import DreamtStep, SwitchRule, WatchRule
from dreamgym.train.update import Learner
from dreamgym.train.weave import token_groups
from dreamgym.types import Source, Task, derive_seed

BEST_LOOK = "best"
"""The folder, inside that of the checkpoints, of what a policy that went astray goes back to."""


class TaskSampler(Protocol):
    """Picks what is practised."""

    def draw(self, step: int, count: int) -> tuple[Task, ...]:
        """Return the tasks of a step. The same step, after the same past, gets the same tasks."""

    def observe(self, groups: Sequence[Group]) -> Figures:
        """Take note of what came of them; return figures, under `tasks/`."""

    async def refill(self, step: int) -> Figures:
        """Make new tasks where it is time to, after the tasks of a step were observed."""

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

    async def refill(self, step: int) -> Figures:
        """Make nothing."""
        return {}

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
    writer: Writer
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
    remember: Callable[[int, Sequence[Group]], None] = lambda step, groups: None
    """Keeps what was played in a step. A step that a crash cut off comes twice."""
    refused_offline: float | None = None
    """The share of recorded actions that reality refused, to compare a dream with."""

    @property
    def real(self) -> bool:
        """Whether reality answers."""
        return self.answerer.source is Source.REAL


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How long, and in what portions."""

    steps: int
    """At most; where reality takes the dream's place, in the dream."""
    groups: int = 12
    """Tasks per step."""
    play: GroupPlan = field(default_factory=GroupPlan)
    learning_rate: float = 3e-4
    warmup_steps: int = 5
    """Steps over which the learning rate rises; then it stays."""
    cooldown_steps: int = 0
    """The last of `steps`, over which it falls again."""
    probe_every: int = 10
    """Steps between looks at reality; the first is before any step, the last after all."""
    checkpoint_every: int = 1
    real_steps: int = 0
    """Steps in reality, where it takes the dream's place; 0 means as many as can be paid for."""
    real_transitions: int | None = None
    """The real transitions that practice may take, at the very most."""
    switch: SwitchRule = field(default_factory=SwitchRule)
    """When reality takes the dream's place."""
    watch: WatchRule = field(default_factory=WatchRule)

    def __post_init__(self) -> None:
        """Refuse plans that cannot be followed."""
        for name in ("steps", "groups", "probe_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")

    @property
    def dearest_group(self) -> int:
        """Transitions that one group can take at most."""
        return self.play.members * self.play.max_steps

    def affordable(self, spent: int) -> int:
        """Return how many groups can be played for real without going over the ceiling."""
        if self.real_transitions is None:
            return self.groups
        return max(0, min(self.groups, (self.real_transitions - spent) // self.dearest_group))

    def rate(self, step: int, *, turned: bool = False) -> float:
        """Return the learning rate of a step; after a turn to reality nothing cools down.

        Steps there are as many as can be paid for, so nobody knows which are the last.
        """
        rising = (step + 1) / max(1, self.warmup_steps)
        falling = 1.0 if turned else (self.steps - step) / (self.cooldown_steps + 1)
        return self.learning_rate * min(1.0, rising, falling)


OnRow = Callable[[Progress, Figures], None]


async def run_loop(
    trainee: Trainee,
    practice: Practice,
    plan: LoopPlan,
    *,
    then: Practice | None = None,
    probe: Probe | None = None,
    watch: Watch | None = None,
    keep_best: Callable[[], None] = lambda: None,
    folder: Path | None = None,
    on_row: OnRow = lambda progress, figures: None,
) -> Progress:
    """Train until the plan is fulfilled.

    Args:
        trainee: who learns.
        practice: where.
        plan: how long.
        then: where it goes on when the dream has taught enough.
        probe: looks at reality.
        watch: compares the dream with reality.
        keep_best: called when a look finds the policy better than all before; keeps its weights.
        folder: for checkpoints. Where it holds one, training goes on from there.
        on_row: gets the figures of each step; steps after a checkpoint come again after a crash.
    """
    stages = (practice,) if then is None else (practice, then)
    best = _best_folder(plan, folder) if watch is not None else None
    better = _keeper(trainee, keep_best, best)
    progress = _restore(trainee, stages, folder)
    if probe is not None and not progress.probes:
        progress, seen = await _look(progress, probe, better)
        on_row(progress, seen)
    while not _is_over(progress, plan, stages):
        now = stages[progress.stage]
        progress, figures = await make_step(trainee, now, plan, progress)
        why = ""
        if watch is not None and not now.real and progress.step % plan.watch.every == 0:
            progress, seen, why = await _watch(progress, watch, plan)
            figures |= seen
        if probe is not None and progress.step % plan.probe_every == 0:
            progress, seen = await _look(progress, probe, better)
            figures |= seen
        turn = None if now.real else _turn(progress, plan, why, stages, watched=watch is not None)
        over = turn is not None or _is_over(progress, plan, stages)
        if over and probe is not None and progress.probes[-1]["step"] != progress.step:
            progress, seen = await _look(progress, probe, better)
            figures |= seen
        if turn is not None:
            progress, seen = _take(turn, trainee, progress, best)
            figures |= seen
        on_row(progress, figures)
        if folder is not None and (over or progress.step % plan.checkpoint_every == 0):
            _save(trainee, stages, progress, folder)
    return progress


def _best_folder(plan: LoopPlan, folder: Path | None) -> Path | None:
    """Return where the best policy is kept to go back to, where the plan is to go back."""
    if plan.watch.acts != "return":
        return None
    if folder is None:
        raise ConfigError("to go back to the best policy, a folder for checkpoints is needed")
    return folder / BEST_LOOK


def _keeper(
    trainee: Trainee, keep_best: Callable[[], None], best: Path | None
) -> Callable[[int], None]:
    """Return what keeps a policy that was better than all before."""

    def keep(step: int) -> None:
        keep_best()
        if best is not None:
            save_checkpoint(best, Checkpoint(step, trainee.learner.tensors(), {}), keep=1)

    return keep


def _save(trainee: Trainee, stages: Sequence[Practice], progress: Progress, folder: Path) -> None:
    state = {"progress": asdict(progress), "tasks": stages[progress.stage].tasks.state()}
    save_checkpoint(folder, Checkpoint(progress.step, trainee.learner.tensors(), state))


def _is_over(progress: Progress, plan: LoopPlan, stages: Sequence[Practice]) -> bool:
    """Return whether nothing is left to do."""
    if progress.stopped:
        return True
    paid = not stages[progress.stage].real or plan.affordable(progress.real_steps) > 0
    if progress.stage == 0:
        # Where reality waits, the dream's last step is a turn and no end.
        return not paid or (len(stages) == 1 and progress.step >= plan.steps)
    made = progress.step - progress.turns[-1].step
    return not paid or (plan.real_steps > 0 and made >= plan.real_steps)


def _turn(
    progress: Progress, plan: LoopPlan, mistrust: str, stages: Sequence[Practice], *, watched: bool
) -> Turn | None:
    """Return where practice in a dream goes now, or None where it goes on as it did."""
    more = len(stages) > 1
    alarm, rule = "", plan.switch
    if watched and plan.watch.acts != "note":
        alarm = mistrust or rule.exploited(progress.dreamt, progress.probes)
    why = alarm
    if not why and more:
        why = rule.time_to_go(progress.dreamt, progress.probes)
        if not why and progress.step >= plan.steps:
            why = f"all {plan.steps} steps in the dream are made"
    if not why:
        return None
    back = bool(alarm) and plan.watch.acts == "return" and bool(progress.probes)
    return Turn(progress.step, why, "real" if more else "end", -1 if back else progress.step)


def _take(
    turn: Turn, trainee: Trainee, progress: Progress, best: Path | None
) -> tuple[Progress, Figures]:
    """Take a turn; one that goes back takes the weights of the best look along."""
    if turn.weights < 0:
        turn = replace(turn, weights=progress.best_step)
        if best is not None and progress.best_step != progress.step:
            found = load_checkpoint(best)
            if found is None or found.step != progress.best_step:
                raise ConfigError(f"the weights of step {progress.best_step} are not in {best}")
            trainee.learner.load_tensors(found.tensors)
    figures = {"transfer/turn": 1.0, "transfer/weights": float(turn.weights)}
    return replace(progress, turns=(*progress.turns, turn)), figures


async def make_step(
    trainee: Trainee, practice: Practice, plan: LoopPlan, progress: Progress
) -> tuple[Progress, Figures]:
    """Play groups and learn from them, once."""
    step, began = progress.step, time.monotonic()
    count = plan.affordable(progress.real_steps) if practice.real else plan.groups
    tasks = practice.tasks.draw(step, count)
    slots = plan_groups(tasks, trainee.behaviour, plan.play, step=step, answerer=practice.answerer)
    groups = await play_groups(slots, practice.world, plan.play)
    played = time.monotonic()
    practice.remember(step, groups)
    rate = plan.rate(step, turned=progress.stage > 0)
    figures = {**group_figures(groups), **_learn(trainee, practice, groups, rate, step)}
    figures |= practice.tasks.observe(groups)
    figures |= await practice.tasks.refill(step)
    progress = _counted(progress, practice, plan, groups, figures)
    figures |= gap_figures(figures, practice)
    figures["real/steps_online"] = float(progress.real_steps)
    figures["time/rollout"] = played - began
    figures["time/update"] = time.monotonic() - played
    return progress, figures


def _counted(
    progress: Progress,
    practice: Practice,
    plan: LoopPlan,
    groups: Sequence[Group],
    figures: Mapping[str, float],
) -> Progress:
    """Return the progress with a step that was made."""
    progress = replace(progress, step=progress.step + 1)
    taken = sum(len(one.steps) for group in groups for one in group.episodes)
    if practice.real:
        if not taken and plan.real_transitions is not None:
            broken = [one.error.message for group in groups for one in group.episodes if one.error]
            raise EnvError(f"every episode of step {progress.step} failed: {broken[0]}")
        return replace(progress, real_steps=progress.real_steps + taken)
    unknown = figures["episodes/unknown"] / max(1.0, figures["episodes/played"])
    lately = DreamtStep(figures["reward/success"], unknown, figures["groups/no_variance"])
    dreamt = (*progress.dreamt, lately)
    return replace(progress, dream_steps=progress.dream_steps + taken, dreamt=dreamt)


def gap_figures(figures: Mapping[str, float], practice: Practice) -> Figures:
    """Return what hints at a dream's holes without any real step: `gap/*`."""
    if practice.real:
        return {}
    found = {"gap/unknown": figures["episodes/unknown"] / max(1.0, figures["episodes/played"])}
    if practice.refused_offline is not None:
        found["gap/refused_offline"] = figures["episodes/refused"] - practice.refused_offline
    return found


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
    progress: Progress, probe: Probe, better_at: Callable[[int], None]
) -> tuple[Progress, Figures]:
    began = time.monotonic()
    sight = await probe()
    figures = {**sight.figures, "real/success": sight.success}
    better = sight.success > progress.best_success
    if better:
        better_at(progress.step)
    progress = replace(
        progress,
        probe_steps=progress.probe_steps + sight.transitions,
        best_step=progress.step if better else progress.best_step,
        best_success=max(sight.success, progress.best_success),
        probes=(*progress.probes, {"step": float(progress.step), **figures}),
    )
    if progress.dreamt and not progress.stage:
        figures["gap/practice_minus_real"] = progress.dreamt[-1].success - sight.success
    figures["real/steps_probes"] = float(progress.probe_steps)
    figures["time/probe"] = time.monotonic() - began
    return progress, figures


async def _watch(progress: Progress, watch: Watch, plan: LoopPlan) -> tuple[Progress, Figures, str]:
    """Compare the dream with reality; also return why it is no longer to be trusted, or nothing."""
    began = time.monotonic()
    reading = await watch(progress.step)
    mistrust = plan.watch.mistrust(reading)
    figures = {**reading.figures, "gap/wins": float(reading.wins)}
    if reading.precision is not None:
        figures["gap/precision"] = reading.precision
    figures["gap/alarm"] = float(bool(mistrust))
    progress = replace(
        progress,
        watch_steps=progress.watch_steps + reading.transitions,
        readings=(*progress.readings, {"step": float(progress.step), **figures}),
    )
    figures["real/steps_watch"] = float(progress.watch_steps)
    figures["time/watch"] = time.monotonic() - began
    return progress, figures, mistrust


def _restore(trainee: Trainee, stages: Sequence[Practice], folder: Path | None) -> Progress:
    found = load_checkpoint(folder) if folder is not None else None
    if found is None:
        return Progress()
    trainee.learner.load_tensors(found.tensors)
    progress = read_progress(found.state["progress"])
    stages[progress.stage].tasks.restore(found.state["tasks"])
    return progress


__all__ = [
    "LoopPlan",
    "Practice",
    "Probe",
    "Progress",
    "Sight",
    "TaskSampler",
    "Trainee",
    "UniformTasks",
    "make_step",
    "run_loop",
]
