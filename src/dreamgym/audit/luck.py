"""Luck: how far rewards differ when the very same actions are played again.

The dream's transition cache is emptied before every repetition, and each repetition has a seed of
its own, so that its model has to answer anew, as it would another episode. A cache on disk in front
of the model still answers, and luck it hides is luck nobody meets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import pstdev

from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.retell import retell_in_dream
from dreamgym.experience.world import DreamWorld
from dreamgym.protocols import Retriever
from dreamgym.types import Trajectory, derive_seed


@dataclass(frozen=True, slots=True)
class Luck:
    """What identical actions led to."""

    episodes: int
    repeats: int
    failed: int
    """Episodes of which a repetition broke; in no figure but their own."""
    reward_spread: Figure
    """Mean standard deviation of an episode's total reward over its repetitions."""
    outcome_differs: Figure
    """Episodes that did not always end alike: won, lost, unknown or going on."""
    states_differ: Figure
    """Episodes of which some state was not always the same."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        return {
            "episodes": self.episodes,
            "repeats": self.repeats,
            "failed": self.failed,
            "reward_spread": self.reward_spread.plain(),
            "outcome_differs": self.outcome_differs.plain(),
            "states_differ": self.states_differ.plain(),
        }


async def measure_luck(
    dream: DreamWorld,
    told: Sequence[Trajectory],
    *,
    memory: Retriever | None,
    repeats: int,
    concurrency: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Luck:
    """Tell the same episodes again and again."""
    rounds: list[tuple[Trajectory, ...]] = []
    for number in range(repeats):
        dream.forget()
        rounds.append(
            await retell_in_dream(
                [_reseeded(one, number) for one in told],
                dream,
                memory=memory,
                concurrency=concurrency,
                on_progress=partial(_report, on_progress, number * len(told)),
            )
        )
    return sum_up_luck(list(zip(*rounds, strict=True)), repeats=repeats)


def _reseeded(one: Trajectory, number: int) -> Trajectory:
    """Return an episode as if it were another with the same actions.

    Where episodes do not share replies, each draws its own, by its seed.
    """
    made = one.provenance
    return replace(one, provenance=replace(made, seed=derive_seed("luck", made.seed, number)))


def _report(on_progress: Callable[[int], None], before: int, done: int) -> None:
    on_progress(before + done)


def sum_up_luck(episodes: Sequence[Sequence[Trajectory]], *, repeats: int) -> Luck:
    """Return what the repetitions of each episode amount to."""
    whole = [one for one in episodes if all(told.error is None for told in one)]
    return Luck(
        episodes=len(episodes),
        repeats=repeats,
        failed=len(episodes) - len(whole),
        reward_spread=ratio(
            (one[0].task.id, pstdev(told.total_reward for told in one), 1) for one in whole
        ),
        outcome_differs=ratio(
            (one[0].task.id, len({(told.stop, told.success) for told in one}) > 1, 1)
            for one in whole
        ),
        states_differ=ratio(
            (one[0].task.id, len({_states(told) for told in one}) > 1, 1) for one in whole
        ),
    )


def _states(told: Trajectory) -> tuple[str, ...]:
    return tuple(step.result.observation.text for step in told.steps)
