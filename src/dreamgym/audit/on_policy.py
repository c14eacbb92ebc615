"""A policy's own dreams, told again for real: are its successes in the dream real ones?

The policy plays in the dream; then the same actions are played in the real world, from the same
task and seed. A dream with holes shows here and nowhere else, because only the policy finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dreamgym.audit.drift import Drift, measure_drift
from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.outcome import OutcomeFigures, outcome_figures
from dreamgym.audit.retell import Pair, retell_for_real
from dreamgym.errors import EnvError
from dreamgym.experience.world import DreamWorld
from dreamgym.in_order import in_order
from dreamgym.protocols import World
from dreamgym.rollout.collect import Slot, collect
from dreamgym.rollout.groups import ended_unknown
from dreamgym.types import Source, Trajectory


async def play_and_retell(
    slots: Sequence[Slot],
    dream: DreamWorld,
    real: World,
    *,
    concurrency: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[Pair, ...]:
    """Play the slots in the dream, from real openings, and the same actions for real.

    Progress counts each episode twice: once dreamed, once told again.
    """
    ready = await _with_openings(slots, real, concurrency=concurrency)
    dreamed: list[Trajectory] = []
    async for trajectory in collect(ready, dream, concurrency=concurrency):
        dreamed.append(trajectory)
        on_progress(len(dreamed))
    whole = [one for one in dreamed if one.error is None]
    told = await retell_for_real(
        whole,
        real,
        concurrency=concurrency,
        on_progress=lambda done: on_progress(len(dreamed) + done),
    )
    again = iter(told)
    # A dream that broke has nothing to tell: it stands for itself and counts as failed.
    return tuple(Pair(one, next(again) if one.error is None else one) for one in dreamed)


async def _with_openings(
    slots: Sequence[Slot], real: World, *, concurrency: int
) -> tuple[Slot, ...]:
    """Return the slots as the dream may play them: each task with its real goal and first state."""

    async def look(slot: Slot) -> Slot:
        try:
            env = await real.open(slot.task)
            try:
                opening = await env.reset(slot.provenance.seed)
            finally:
                await env.close()
        except EnvError:
            # Left as it is: the dream will say that it cannot begin, and the episode fails there.
            return slot
        task = replace(slot.task, goal=opening.task.goal, first_state=opening.observation.text)
        return replace(slot, task=task)

    jobs = [partial(look, slot) for slot in slots]
    return tuple([slot async for slot in in_order(jobs, concurrency=concurrency)])


@dataclass(frozen=True, slots=True)
class OnPolicy:
    """What a policy's dreams are worth."""

    policy: str
    episodes: int
    unknown: int
    """Dreams that ended because nobody could tell; in no figure but their own."""
    failed: int
    """Episodes that broke in either world; in no figure but their own."""
    first_failure: str
    figures: OutcomeFigures
    own: OutcomeFigures
    """The same dreams beside real episodes that the policy played by itself, task by task."""
    by_kind: tuple[tuple[str, OutcomeFigures], ...]
    refused_dream: Figure
    """The share of actions that the dream refused."""
    refused_real: Figure
    drift: Drift
    dream_steps: int
    real_steps: int
    """What the retelling cost in real steps."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        return {
            "policy": self.policy,
            "episodes": self.episodes,
            "unknown": self.unknown,
            "failed": self.failed,
            "first_failure": self.first_failure,
            **self.figures.plain(),
            "own_real_success": self.own.real_success.plain(),
            "own_gap": self.own.gap.plain(),
            "refused_dream": self.refused_dream.plain(),
            "refused_real": self.refused_real.plain(),
            "drift": self.drift.plain(),
            "dream_steps": self.dream_steps,
            "real_steps": self.real_steps,
            "by_kind": {kind: figures.plain() for kind, figures in self.by_kind},
        }


def sum_up_policy(
    policy: str, pairs: Sequence[Pair], kinds: Mapping[str, str], *, own: Sequence[Pair] = ()
) -> OnPolicy:
    """Return what the pairs of one policy amount to.

    `own` are the same dreams beside real episodes that the policy played by itself.
    """
    counted = [pair for pair in pairs if pair.counts]
    groups: dict[str, list[Pair]] = {}
    for pair in counted:
        groups.setdefault(kinds.get(pair.real.task.id, "?"), []).append(pair)
    broken = [
        side.error.message for pair in pairs for side in (pair.dream, pair.real) if side.error
    ]
    told_again = [pair.real for pair in pairs if pair.real.provenance.source is Source.REAL]
    return OnPolicy(
        policy=policy,
        episodes=len(pairs),
        unknown=sum(ended_unknown(pair.dream) for pair in pairs),
        failed=sum(pair.failed for pair in pairs),
        first_failure=broken[0] if broken else "",
        figures=outcome_figures(counted),
        own=outcome_figures([pair for pair in own if pair.counts]),
        by_kind=tuple((kind, outcome_figures(group)) for kind, group in sorted(groups.items())),
        refused_dream=_refused([pair.dream for pair in counted]),
        refused_real=_refused([pair.real for pair in counted]),
        drift=measure_drift(pairs),
        dream_steps=sum(len(pair.dream.steps) for pair in pairs),
        real_steps=sum(len(real.steps) for real in told_again),
    )


def _refused(trajectories: Sequence[Trajectory]) -> Figure:
    return ratio(
        (one.task.id, step.result.refused, 1) for one in trajectories for step in one.steps
    )
