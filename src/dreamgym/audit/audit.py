"""The audit itself: every measure in turn, over one dream. Says whether one may train in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial

from dreamgym.audit.bound import Bound
from dreamgym.audit.calibration import calibrate
from dreamgym.audit.closed_loop import sum_up_loop
from dreamgym.audit.examples import choose_examples
from dreamgym.audit.gate import Thresholds
from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.judge import Case, Judged, judge_steps
from dreamgym.audit.kind import kinds_of
from dreamgym.audit.luck import Luck, measure_luck
from dreamgym.audit.on_policy import OnPolicy, play_and_retell, sum_up_policy
from dreamgym.audit.one_step import OneStep, StepCheck, ask_steps, sum_up_steps
from dreamgym.audit.report import AuditReport, Cost
from dreamgym.audit.retell import Pair, retell_in_dream
from dreamgym.experience.world import DreamWorld
from dreamgym.protocols import LLM, Embedder, Retriever, World
from dreamgym.rollout.collect import Slot, collect
from dreamgym.types import Source, Trajectory

Progress = Callable[[float, str], None]
"""Gets the share that is done and the name of the measure that is under way."""


@dataclass(frozen=True, slots=True)
class Player:
    """A policy and the real episodes that it would play."""

    name: str
    slots: tuple[Slot, ...]
    in_dream: bool
    """Whether it can act in a dream. One that needs the engine plays for real and is told again."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """How an audit goes about it."""

    concurrency: int = 128
    luck_episodes: int = 16
    luck_repeats: int = 3
    judge_cases: int = 100
    gamma: float = 0.95
    delta: float = 0.01
    examples: int = 8
    thresholds: Thresholds = field(default_factory=Thresholds)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited, with what."""

    dream: DreamWorld
    embedder: Embedder
    memory: Retriever | None = None
    """Where similar steps are looked up; None leaves it to the dream."""
    real: World | None = None
    """The real world; without it only recorded trajectories are used."""
    remembered: AbstractSet[str] = frozenset()
    """Ids of the tasks that the dream's memory holds episodes of."""
    judge: LLM | None = None


async def audit(
    subject: Subject,
    trajectories: Sequence[Trajectory],
    *,
    players: Sequence[Player] = (),
    plan: AuditPlan | None = None,
    on_progress: Progress = lambda share, stage: None,
) -> AuditReport:
    """Measure how far a dream can be trusted.

    Args:
        subject: the dream and what it is compared with.
        trajectories: held-out real episodes.
        players: policies; those that can act in a dream are judged on their own actions.
        plan: how much of everything.
        on_progress: is told how far it is.
    """
    started, wanted = time.monotonic(), plan or AuditPlan()
    meter = _Meter(on_progress, _weights(trajectories, players, wanted))
    checks = await ask_steps(
        subject.dream,
        trajectories,
        memory=subject.memory,
        embedder=subject.embedder,
        concurrency=wanted.concurrency,
        on_progress=meter.stage("one-step"),
    )
    played, own, live = await _play(subject, players, wanted, meter)
    retold = await _retell(subject, [*trajectories, *live], wanted, meter)
    luck = await _luck(subject, trajectories, wanted, meter)
    judged = await _judge(subject, checks, wanted, meter)
    # Goals are known only once an episode was opened, so kinds are read off at the end.
    pairs = [*retold, *_flat(played)]
    kinds = kinds_of([pair.real.task for pair in pairs])
    policies = tuple(
        sum_up_policy(name, found, kinds, own=own[name]) for name, found in played.items()
    )
    one_step = sum_up_steps(checks, kinds)
    real_steps = sum(one.real_steps for one in policies)
    real_steps += sum(len(one.steps) for one in [*live, *(pair.real for pair in _flat(own))])
    on_progress(1.0, "done")
    return AuditReport(
        one_step=one_step,
        on_policy=policies,
        closed_loop=sum_up_loop(retold, kinds, played=own),
        luck=luck,
        bounds=_bounds(one_step, policies, wanted),
        calibration=calibrate(checks),
        judged=judged,
        disagreements=choose_examples(checks, retold, _flat(played), most=wanted.examples),
        origins=_counted(subject.dream, "origin_"),
        doubts=_counted(subject.dream, "unknown_"),
        cost=Cost(
            real_steps=real_steps,
            dream_steps=len(checks) + sum(len(pair.dream.steps) for pair in pairs),
            seconds=time.monotonic() - started,
        ),
        thresholds=wanted.thresholds,
        familiar=_familiar(subject, pairs),
    )


def _familiar(subject: Subject, pairs: Sequence[Pair]) -> Figure:
    tasks = {pair.real.task.id for pair in pairs}
    return ratio((task, task in subject.remembered, 1) for task in tasks)


Pairs = dict[str, tuple[Pair, ...]]


async def _play(
    subject: Subject, players: Sequence[Player], plan: AuditPlan, meter: _Meter
) -> tuple[Pairs, Pairs, list[Trajectory]]:
    """Return dreams told again for real, dreams beside own real episodes, and real episodes."""
    played: Pairs = {}
    own: Pairs = {}
    live: list[Trajectory] = []
    for player in players:
        if subject.real is None:
            raise ValueError("policies need a real world to be compared with")
        tell = meter.stage(player.name)
        for_real: list[Trajectory] = []
        async for one in collect(player.slots, subject.real, concurrency=plan.concurrency):
            for_real.append(one)
            tell(len(for_real))
        if not player.in_dream:
            live += for_real
            continue
        dreams = [_dreamed(slot) for slot in player.slots]
        pairs = await play_and_retell(
            dreams,
            subject.dream,
            subject.real,
            concurrency=plan.concurrency,
            on_progress=partial(_report, tell, len(for_real)),
        )
        played[player.name] = pairs
        own[player.name] = tuple(
            Pair(pair.dream, one) for pair, one in zip(pairs, for_real, strict=True)
        )
    return played, own, live


def _report(tell: Callable[[int], None], before: int, done: int) -> None:
    tell(before + done)


def _dreamed(slot: Slot) -> Slot:
    return replace(slot, provenance=replace(slot.provenance, source=Source.DREAM))


async def _retell(
    subject: Subject, shown: Sequence[Trajectory], plan: AuditPlan, meter: _Meter
) -> tuple[Pair, ...]:
    dreams = await retell_in_dream(
        shown,
        subject.dream,
        memory=subject.memory,
        concurrency=plan.concurrency,
        on_progress=meter.stage("closed loop"),
    )
    return tuple(Pair(told, real) for told, real in zip(dreams, shown, strict=True))


async def _luck(
    subject: Subject, shown: Sequence[Trajectory], plan: AuditPlan, meter: _Meter
) -> Luck | None:
    if plan.luck_repeats < 2 or not plan.luck_episodes:
        return None
    return await measure_luck(
        subject.dream,
        shown[: plan.luck_episodes],
        memory=subject.memory,
        repeats=plan.luck_repeats,
        concurrency=plan.concurrency,
        on_progress=meter.stage("luck"),
    )


async def _judge(
    subject: Subject, checks: Sequence[StepCheck], plan: AuditPlan, meter: _Meter
) -> Judged | None:
    if subject.judge is None:
        return None
    answered = [check for check in checks if check.answer is not None]
    # Evenly over all of them, so that no few episodes stand for the rest.
    stride = max(1, len(answered) // max(plan.judge_cases, 1))
    chosen = answered[::stride][: plan.judge_cases]
    cases = [case for check in chosen if (case := _case(check)) is not None]
    return await judge_steps(subject.judge, cases, on_progress=meter.stage("judge"))


def _case(check: StepCheck) -> Case | None:
    told, real = check.answer, check.real
    if told is None:
        return None
    ending = "the action is refused" if told.refused else "the action is carried out"
    if told.done:
        ending += ", and the task is achieved" if told.success else ", and the episode is over"
    return Case(real.trajectory_id, real.goal, real.state, real.action, told.next_state, ending)


def _bounds(one_step: OneStep, policies: Sequence[OnPolicy], plan: AuditPlan) -> tuple[Bound, ...]:
    recorded = one_step.figures
    wrong = replace(
        recorded.same_state,
        mean=1 - recorded.same_state.mean,
        low=1 - recorded.same_state.high,
        high=1 - recorded.same_state.low,
    )
    terms = [("the recorded episodes", recorded.reward_error, wrong)]
    terms += [
        (f"{one.policy}, until dream and reality part", one.drift.reward_error,
         one.drift.state_error)
        for one in policies
    ]  # fmt: skip
    return tuple(Bound(name, plan.gamma, plan.delta, r, p) for name, r, p in terms)


def _flat(pairs: Pairs) -> list[Pair]:
    return [pair for found in pairs.values() for pair in found]


def _counted(dream: DreamWorld, what: str) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name.removeprefix(what), count)
        for name, count in sorted(dream.counts.items())
        if name.startswith(what)
    )


def _weights(
    trajectories: Sequence[Trajectory], players: Sequence[Player], plan: AuditPlan
) -> dict[str, tuple[float, int]]:
    """Return, for each measure, how long it may take and how many times it reports."""
    steps = sum(len(one.steps) for one in trajectories)
    mean = steps / max(len(trajectories), 1)
    live = sum(len(player.slots) for player in players if not player.in_dream)
    lucky = min(plan.luck_episodes, len(trajectories)) * plan.luck_repeats
    weights = {
        "one-step": (float(steps), steps),
        "closed loop": (steps + live * mean, len(trajectories) + live),
        "luck": (lucky * mean, lucky),
    }
    for player in players:
        count = len(player.slots)
        weights[player.name] = (2 * mean * count, 3 * count if player.in_dream else count)
    return weights


class _Meter:
    """Adds the progress of the measures up to one share."""

    def __init__(self, tell: Progress, weights: dict[str, tuple[float, int]]) -> None:
        self._tell = tell
        self._weights = weights
        self._shares = dict.fromkeys(weights, 0.0)

    def stage(self, name: str) -> Callable[[int], None]:
        """Return what one measure reports to."""
        weight, reports = self._weights.get(name, (0.0, 1))
        total = sum(other for other, _ in self._weights.values()) or 1.0

        def report(done: int) -> None:
            self._shares[name] = weight * min(1.0, done / max(reports, 1))
            self._tell(min(1.0, sum(self._shares.values()) / total), name)

        return report
