"""What a set of trajectories amounts to: success with its interval, lengths, coverage, refusals.

Failed episodes count in no figure but their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from dreamgym.types import Trajectory

HARD_REFUSALS_WANTED = 0.3
"""With fewer refused actions than this a dream was found to believe every action."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of successes with its 95 % Wilson interval."""

    mean: float
    low: float
    high: float
    episodes: int

    def plain(self) -> dict[str, float | int | None]:
        """Return the rate for a JSON file; no episodes give no mean."""
        mean = None if math.isnan(self.mean) else self.mean
        return {"mean": mean, "low": self.low, "high": self.high, "episodes": self.episodes}

    def __str__(self) -> str:
        """Return the rate as `0.50 [0.40, 0.60] of 100`."""
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}] of {self.episodes}"


def wilson(successes: int, episodes: int) -> Rate:
    """Return the share with its 95 % Wilson score interval; no episodes means know nothing."""
    if episodes == 0:
        return Rate(math.nan, 0.0, 1.0, 0)
    z = 1.959963984540054
    share = successes / episodes
    scale = 1 + z * z / episodes
    centre = (share + z * z / (2 * episodes)) / scale
    half = z * math.sqrt(share * (1 - share) / episodes + z * z / (4 * episodes**2)) / scale
    return Rate(share, max(0.0, centre - half), min(1.0, centre + half), episodes)


@dataclass(frozen=True, slots=True)
class Summary:
    """A record in figures."""

    episodes: int
    """Episodes that ran to an end; failed ones are counted in `failed` only."""
    failed: int
    failures: tuple[tuple[str, int], ...]
    """How often each kind of failure happened."""
    success: tuple[tuple[str, Rate], ...]
    """Success by behaviour policy."""
    transitions: int
    refused: int
    """Actions that the environment did not carry out."""
    no_effect: int
    """Actions that were carried out and left the state as it was."""
    distinct_states: int
    distinct_pairs: int
    """Distinct (state, action) pairs."""
    verbs: tuple[tuple[str, int], ...]
    """How often each first word of an action was used, most frequent first."""
    tasks: int
    shortest: int
    median_length: float
    longest: int

    @property
    def refused_share(self) -> float:
        """The share of refused actions."""
        return self.refused / self.transitions if self.transitions else 0.0

    @property
    def enough_refusals(self) -> bool:
        """Whether an experience model could learn from this record what reality refuses."""
        return self.refused_share >= HARD_REFUSALS_WANTED


def summarise(trajectories: Iterable[Trajectory]) -> Summary:
    """Read trajectories once and return their figures."""
    outcomes: dict[str, list[bool]] = {}
    failures: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    states: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    tasks: set[str] = set()
    lengths: list[int] = []
    refused = no_effect = 0
    for trajectory in trajectories:
        if trajectory.error is not None:
            failures[trajectory.error.kind] += 1
            continue
        outcomes.setdefault(trajectory.provenance.behaviour, []).append(trajectory.success)
        lengths.append(len(trajectory.steps))
        tasks.add(trajectory.task.id)
        states.add(trajectory.opening.text)
        for step in trajectory.transitions():
            states.add(step.next_state)
            pairs.add((step.state, step.action))
            verbs[(step.action.split() or [""])[0]] += 1
            refused += step.refused
            no_effect += not step.refused and step.state == step.next_state
    return Summary(
        episodes=len(lengths),
        failed=failures.total(),
        failures=tuple(failures.most_common()),
        success=tuple(
            (name, wilson(sum(results), len(results))) for name, results in sorted(outcomes.items())
        ),
        transitions=sum(lengths),
        refused=refused,
        no_effect=no_effect,
        distinct_states=len(states),
        distinct_pairs=len(pairs),
        verbs=tuple(verbs.most_common()),
        tasks=len(tasks),
        shortest=min(lengths, default=0),
        median_length=float(median(lengths)) if lengths else 0.0,
        longest=max(lengths, default=0),
    )
