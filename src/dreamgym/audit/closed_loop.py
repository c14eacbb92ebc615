"""Whole real episodes told again in the dream: outcomes, drift, and the order of policies.

Nobody corrects the dream on the way: it lives with what it said before, as it does in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dreamgym.audit.drift import Drift, measure_drift
from dreamgym.audit.interval import NOTHING, Figure
from dreamgym.audit.outcome import OutcomeFigures, outcome_figures
from dreamgym.audit.ranks import spearman
from dreamgym.audit.retell import Pair
from dreamgym.types import derive_seed

FEWEST_POLICIES = 3
"""Below this many policies an order says nothing."""
DRAWS = 400


@dataclass(frozen=True, slots=True)
class PolicyPair:
    """One policy in both worlds."""

    name: str
    how: str
    """`retold`: its real actions were told again; `played`: it acted in both worlds itself."""
    episodes: int
    figures: OutcomeFigures

    def plain(self) -> dict[str, object]:
        """Return the comparison for a JSON file."""
        told = self.figures
        return {
            "how": self.how,
            "episodes": self.episodes,
            "dream_success": told.dream_success.plain(),
            "real_success": told.real_success.plain(),
            "gap": told.gap.plain(),
        }


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """What retelling whole episodes found."""

    episodes: int
    unknown: int
    failed: int
    figures: OutcomeFigures
    by_kind: tuple[tuple[str, OutcomeFigures], ...]
    drift: Drift
    policies: tuple[PolicyPair, ...]
    rank_correlation: Figure
    """Spearman's correlation of dream and real success over the policies."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        return {
            "episodes": self.episodes,
            "unknown": self.unknown,
            "failed": self.failed,
            **self.figures.plain(),
            "drift": self.drift.plain(),
            "policies": {f"{one.name} ({one.how})": one.plain() for one in self.policies},
            "rank_correlation": self.rank_correlation.plain(),
            "by_kind": {kind: figures.plain() for kind, figures in self.by_kind},
        }


def sum_up_loop(
    pairs: Sequence[Pair], kinds: Mapping[str, str], *, played: Mapping[str, Sequence[Pair]]
) -> ClosedLoop:
    """Return what the retold pairs amount to.

    Args:
        pairs: real episodes and their retellings; who acted is read off their provenance.
        kinds: the kind of each task.
        played: policies that acted in both worlds by themselves, each on the same tasks.
    """
    counted = [pair for pair in pairs if pair.counts]
    groups: dict[str, list[Pair]] = {}
    policies: dict[tuple[str, str], list[Pair]] = {}
    for pair in counted:
        groups.setdefault(kinds.get(pair.real.task.id, "?"), []).append(pair)
        policies.setdefault((pair.real.provenance.behaviour, "retold"), []).append(pair)
    for name, own in played.items():
        policies[name, "played"] = [pair for pair in own if pair.counts]
    named = {key: found for key, found in sorted(policies.items()) if found}
    return ClosedLoop(
        episodes=len(pairs),
        unknown=sum(pair.unknown for pair in pairs if not pair.failed),
        failed=sum(pair.failed for pair in pairs),
        figures=outcome_figures(counted),
        by_kind=tuple((kind, outcome_figures(group)) for kind, group in sorted(groups.items())),
        drift=measure_drift(pairs),
        policies=tuple(
            PolicyPair(name, how, len(found), outcome_figures(found))
            for (name, how), found in named.items()
        ),
        rank_correlation=rank_correlation(list(named.values())),
    )


def rank_correlation(policies: Sequence[Sequence[Pair]]) -> Figure:
    """Return how alike two worlds order policies by their success, with an interval.

    The interval comes from drawing each policy's episodes again. Too few policies, or policies
    that are all alike in one of the worlds, have no order.
    """
    if len(policies) < FEWEST_POLICIES:
        return NOTHING
    outcomes = [
        np.array([(pair.dream.success, pair.real.success) for pair in pairs], dtype=np.float64)
        for pairs in policies
    ]
    mean = spearman(*np.array([table.mean(axis=0) for table in outcomes]).T)
    rng = np.random.default_rng(derive_seed("rank", len(policies)))
    drawn = []
    for _ in range(DRAWS):
        again = [table[rng.integers(0, len(table), len(table))].mean(axis=0) for table in outcomes]
        value = spearman(*np.array(again).T)
        if not np.isnan(value):
            drawn.append(value)
    if np.isnan(mean) or not drawn:
        return NOTHING
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Figure(mean, float(low), float(high), len(policies))
