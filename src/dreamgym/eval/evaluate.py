"""Success of a policy on held-out tasks of a real world, with its interval and what it cost.

Failed episodes are counted apart and never as a loss of the agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dreamgym.protocols import World
from dreamgym.rollout.collect import Slot, collect
from dreamgym.rollout.summary import Rate, wilson
from dreamgym.types import Trajectory


@dataclass(frozen=True, slots=True)
class EvalReport:
    """What an evaluation found."""

    success: Rate
    failed: int
    """Episodes in which the environment or the agent broke; part of no rate."""
    failures: tuple[tuple[str, int], ...]
    first_failure: str
    """What the first of them said."""
    transitions: int
    """Real steps that the evaluation took."""
    mean_length: float
    refused_share: float


async def evaluate(
    slots: Sequence[Slot],
    world: World,
    *,
    concurrency: int,
    on_episode: Callable[[Trajectory], None] = lambda trajectory: None,
) -> EvalReport:
    """Play every slot once and report."""
    outcomes: list[bool] = []
    failures: Counter[str] = Counter()
    steps = refused = counted_steps = 0
    first_failure = ""
    async for trajectory in collect(slots, world, concurrency=concurrency):
        on_episode(trajectory)
        steps += len(trajectory.steps)
        if trajectory.error is not None:
            first_failure = first_failure or trajectory.error.message
            failures[trajectory.error.kind] += 1
            continue
        outcomes.append(trajectory.success)
        counted_steps += len(trajectory.steps)
        refused += sum(step.result.refused for step in trajectory.steps)
    return EvalReport(
        success=wilson(sum(outcomes), len(outcomes)),
        failed=failures.total(),
        failures=tuple(failures.most_common()),
        first_failure=first_failure,
        transitions=steps,
        mean_length=counted_steps / len(outcomes) if outcomes else 0.0,
        refused_share=refused / counted_steps if counted_steps else 0.0,
    )
