"""What practising a task is worth: DreamGym Eq. 7, and how old news of it fades.

A task that is sometimes solved and sometimes not has something to teach; one that always or never
is, has not. Nothing here knows who plays or where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.errors import ConfigError
from dreamgym.rollout.groups import Group, ended_unknown


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of one group of a task."""

    step: int
    rewards: tuple[float, ...]
    """Outcome rewards of the episodes that count: neither failed nor given up as unknown."""
    unknown: int = 0
    failed: int = 0

    @property
    def solved(self) -> bool:
        """Whether every episode that counts was a success."""
        return bool(self.rewards) and min(self.rewards) >= 1.0


def visit_of(group: Group, step: int) -> Visit:
    """Return what came of a group, 1 for success and 0 for anything else that has an end."""
    sound = [one for one in group.episodes if one.error is None and one.steps]
    known = [one for one in sound if not ended_unknown(one)]
    rewards = tuple(float(one.success) for one in known)
    return Visit(step, rewards, len(sound) - len(known), len(group.episodes) - len(sound))


def group_value(rewards: Sequence[float]) -> float | None:
    """Return the variance of the outcome rewards of a group (DreamGym Eq. 7).

    None where there are fewer than two: one outcome says nothing about variance.
    """
    if len(rewards) < 2:
        return None
    mean = sum(rewards) / len(rewards)
    return sum((reward - mean) ** 2 for reward in rewards) / len(rewards)


@dataclass(frozen=True, slots=True)
class Worth:
    """How likely a task is drawn, by its value and by how old that value is."""

    unseen: float = 0.125
    """What a task is worth that nobody has tried: half of the most that two outcomes can give."""
    half_life: float = 20.0
    """Steps after which half of a value is forgotten; what is forgotten counts as unseen."""
    floor: float = 0.01
    """What every task is worth at least."""

    def __post_init__(self) -> None:
        """Refuse numbers that make no weights."""
        if self.half_life <= 0:
            raise ConfigError(f"half_life is {self.half_life}; it must be above 0")
        if self.unseen < 0 or self.floor <= 0:
            raise ConfigError(f"unseen {self.unseen} must not be negative, floor {self.floor} > 0")

    def kept(self, age: int) -> float:
        """Return the share of a value that is left after so many steps."""
        return float(0.5 ** (max(0, age) / self.half_life))

    def now(self, value: float | None, age: int) -> float:
        """Return what a task is worth today, given a value that is `age` steps old."""
        if value is None:
            return max(self.floor, self.unseen)
        kept = self.kept(age)
        return max(self.floor, kept * value + (1.0 - kept) * self.unseen)
