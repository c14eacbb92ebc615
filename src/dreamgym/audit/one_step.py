"""One step at a time: the dream is asked about recorded real steps, each after its real past.

What it says is compared with what reality said. Steps that the dream calls unknown, and replies
that could not be had, are counted and are part of no other figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.likeness import same_state, similarities, token_f1
from dreamgym.errors import EnvError
from dreamgym.experience.world import DreamWorld
from dreamgym.in_order import in_order
from dreamgym.protocols import Embedder, Retriever
from dreamgym.types import Opening, Origin, Prediction, Trajectory, Transition


@dataclass(frozen=True, slots=True)
class StepCheck:
    """What the dream said about one recorded step."""

    real: Transition
    told: Prediction | None
    """None where no reply could be had; then `failure` says why."""
    failure: str = ""
    similarity: float = 0.0
    """Cosine of the two next states."""

    @property
    def answer(self) -> Prediction | None:
        """The prediction, unless the dream says that it does not know."""
        told = self.told
        return None if told is None or told.origin is Origin.UNKNOWN else told

    @property
    def same_state(self) -> bool:
        """Whether the next state is right, apart from what was said."""
        return self.told is not None and same_state(self.told.next_state, self.real.next_state)

    @property
    def right(self) -> bool:
        """Whether state and flags are all right."""
        told, real = self.told, self.real
        if told is None:
            return False
        flags = (told.refused, told.done, told.success)
        return self.same_state and flags == (real.refused, real.done, real.success)


async def ask_steps(
    dream: DreamWorld,
    trajectories: Sequence[Trajectory],
    *,
    memory: Retriever | None,
    embedder: Embedder,
    concurrency: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[StepCheck, ...]:
    """Ask the dream about every step of the trajectories; never shows it the trajectory itself."""

    async def ask(trajectory: Trajectory, index: int, real: Transition) -> StepCheck:
        env = await dream.open(trajectory.task, memory, without=trajectory.id)
        try:
            env.jump(Opening(trajectory.task, trajectory.opening), trajectory.steps[:index])
            return StepCheck(real, await env.predict(real.action))
        except EnvError as error:
            return StepCheck(real, None, failure=str(error))
        finally:
            await env.close()

    jobs = [
        partial(ask, one, index, real)
        for one in trajectories
        for index, real in enumerate(one.transitions())
    ]
    checks: list[StepCheck] = []
    async for check in in_order(jobs, concurrency=concurrency):
        checks.append(check)
        on_progress(len(checks))
    return _with_similarity(checks, embedder)


def _with_similarity(checks: Sequence[StepCheck], embedder: Embedder) -> tuple[StepCheck, ...]:
    pairs = [(one.told.next_state if one.told else "", one.real.next_state) for one in checks]
    return tuple(
        StepCheck(one.real, one.told, one.failure, alike)
        for one, alike in zip(checks, similarities(pairs, embedder), strict=True)
    )


@dataclass(frozen=True, slots=True)
class Confusion:
    """Success, told against true, in steps."""

    both: int
    only_told: int
    """Successes that are not: what a policy would learn to collect."""
    only_real: int
    neither: int


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One-step figures of a set of steps."""

    precision: Figure
    """Of the successes that the dream shows, how many are."""
    recall: Figure
    false_success: Figure
    """Of the steps that do not succeed, how many succeed in the dream."""
    false_success_invalid: Figure
    """The same for actions that reality refuses."""
    done_f1: Figure
    invalid_refused: Figure
    """Of the actions that reality refuses, how many the dream refuses."""
    valid_refused: Figure
    """Of the actions that reality carries out, how many the dream refuses."""
    exact: Figure
    """Next states that are right to the letter."""
    same_state: Figure
    """Next states that are right apart from what was said to the action."""
    token_f1: Figure
    similarity: Figure
    reward_error: Figure
    """Mean distance of success told and success true: the paper's outcome reward."""

    def plain(self) -> dict[str, object]:
        """Return the figures for a JSON file."""
        return {name: getattr(self, name).plain() for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class OneStep:
    """What one-step questions found."""

    steps: int
    episodes: int
    unknown: int
    """Steps about which the dream said that it does not know."""
    failed: int
    """Steps without a readable reply."""
    failures: tuple[tuple[str, int], ...]
    confusion: Confusion
    figures: StepFigures
    by_kind: tuple[tuple[str, StepFigures], ...]
    by_origin: tuple[tuple[str, int, Figure], ...]
    """Who decided, how many steps, and the share of them that is right in state and flags."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        confusion = self.confusion
        return {
            "steps": self.steps,
            "episodes": self.episodes,
            "unknown": self.unknown,
            "failed": self.failed,
            "failures": dict(self.failures),
            "success_confusion": {
                "told_and_true": confusion.both,
                "only_told": confusion.only_told,
                "only_true": confusion.only_real,
                "neither": confusion.neither,
            },
            **self.figures.plain(),
            "by_kind": {kind: figures.plain() for kind, figures in self.by_kind},
            "by_origin": {
                name: {"steps": count, "right": right.plain()}
                for name, count, right in self.by_origin
            },
        }


def sum_up_steps(checks: Sequence[StepCheck], kinds: dict[str, str]) -> OneStep:
    """Return the figures of the checks, whole, by kind of task and by who decided."""
    answered = [check for check in checks if check.answer is not None]
    groups: dict[str, list[StepCheck]] = {}
    origins: dict[str, list[StepCheck]] = {}
    for check in answered:
        groups.setdefault(kinds.get(check.real.task_id, "?"), []).append(check)
        origins.setdefault(check.answer.origin if check.answer else "", []).append(check)
    failures = Counter(_kind_of_failure(check.failure) for check in checks if check.told is None)
    return OneStep(
        steps=len(checks),
        episodes=len({check.real.trajectory_id for check in checks}),
        unknown=sum(check.told is not None and check.answer is None for check in checks),
        failed=failures.total(),
        failures=tuple(failures.most_common()),
        confusion=_confusion(answered),
        figures=step_figures(answered),
        by_kind=tuple((kind, step_figures(group)) for kind, group in sorted(groups.items())),
        by_origin=tuple(
            (str(name), len(group), ratio(_rows(group, lambda real, told, one: (one.right, 1))))
            for name, group in sorted(origins.items())
        ),
    )


def _kind_of_failure(message: str) -> str:
    return message.split(":")[1].strip() if message.count(":") > 1 else message[:60]


Count = Callable[[Transition, Prediction, StepCheck], tuple[float, float]]
"""What a step adds above and below the line."""


def _rows(checks: Sequence[StepCheck], count: Count) -> list[tuple[str, float, float]]:
    return [
        (one.real.trajectory_id, *count(one.real, one.answer, one))
        for one in checks
        if one.answer is not None
    ]


def step_figures(checks: Sequence[StepCheck]) -> StepFigures:
    """Return the figures of steps that the dream answered."""
    counts: dict[str, Count] = {
        "precision": lambda real, told, one: (real.success and told.success, told.success),
        "recall": lambda real, told, one: (real.success and told.success, real.success),
        "false_success": lambda real, told, one: (
            told.success and not real.success,
            not real.success,
        ),
        "false_success_invalid": lambda real, told, one: (
            told.success and real.refused,
            real.refused,
        ),
        "done_f1": lambda real, told, one: (2 * (real.done and told.done), real.done + told.done),
        "invalid_refused": lambda real, told, one: (real.refused and told.refused, real.refused),
        "valid_refused": lambda real, told, one: (
            told.refused and not real.refused,
            not real.refused,
        ),
        "exact": lambda real, told, one: (told.next_state == real.next_state, 1),
        "same_state": lambda real, told, one: (one.same_state, 1),
        "token_f1": lambda real, told, one: (token_f1(told.next_state, real.next_state), 1),
        "similarity": lambda real, told, one: (one.similarity, 1),
        "reward_error": lambda real, told, one: (told.success != real.success, 1),
    }
    return StepFigures(**{name: ratio(_rows(checks, count)) for name, count in counts.items()})


def _confusion(checks: Sequence[StepCheck]) -> Confusion:
    seen = Counter(
        (one.answer.success, one.real.success) for one in checks if one.answer is not None
    )
    return Confusion(
        both=seen[True, True],
        only_told=seen[True, False],
        only_real=seen[False, True],
        neither=seen[False, False],
    )
