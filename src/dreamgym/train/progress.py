"""How far a training has come: what it counts, what looks at reality and watches found, its turns.

Values only; with weights and optimiser they are all that a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dreamgym.train.transfer import DreamtStep, Reading

Figures = dict[str, float]


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
Watch = Callable[[int], Awaitable[Reading]]
"""Compares the dream with reality on what the policy does in it after so many steps."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Where practice ended before its time, or went on elsewhere."""

    step: int
    why: str
    to: str
    """`real`, or `end`."""
    weights: int
    """The step whose weights it went on with; an earlier one if it went back to its best."""


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
    watch_steps: int = 0
    """Real transitions that the watch over a dream took."""
    readings: tuple[dict[str, float], ...] = ()
    """What the watch found each time, with its step."""
    dreamt: tuple[DreamtStep, ...] = ()
    """What was practised in a dream, step by step."""
    turns: tuple[Turn, ...] = ()

    @property
    def stage(self) -> int:
        """How often practice went on elsewhere."""
        return sum(turn.to == "real" for turn in self.turns)

    @property
    def stopped(self) -> bool:
        """Whether it ended before its time."""
        return bool(self.turns) and self.turns[-1].to == "end"


def read_progress(plain: Mapping[str, Any]) -> Progress:
    """Return a progress from what JSON kept of it; what an older one did not count is empty."""
    lists = {
        "probes": tuple(plain["probes"]),
        "readings": tuple(plain.get("readings", ())),
        "dreamt": tuple(DreamtStep(**one) for one in plain.get("dreamt", ())),
        "turns": tuple(Turn(**one) for one in plain.get("turns", ())),
    }
    return Progress(**{**plain, **lists})
