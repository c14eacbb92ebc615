"""An audit as a whole: its measures, what it cost, and what the gate says to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dreamgym.audit.bound import Bound
from dreamgym.audit.calibration import Calibration
from dreamgym.audit.closed_loop import ClosedLoop
from dreamgym.audit.gate import GateFigures, Thresholds, check_gate
from dreamgym.audit.interval import Figure
from dreamgym.audit.judge import Judged
from dreamgym.audit.luck import Luck
from dreamgym.audit.on_policy import OnPolicy
from dreamgym.audit.one_step import OneStep


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One step at which dream and reality part, for people to read."""

    where: str
    """`one-step`, `on-policy` or `closed loop`."""
    task: str
    step: int
    goal: str
    state: str
    action: str
    told: str
    told_flags: str
    true: str
    true_flags: str
    reasoning: str

    def plain(self) -> dict[str, object]:
        """Return the disagreement for a JSON file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Cost:
    """What an audit took."""

    real_steps: int
    """Steps in the real environment, retelling included."""
    dream_steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything that an audit found."""

    one_step: OneStep
    on_policy: tuple[OnPolicy, ...]
    closed_loop: ClosedLoop
    luck: Luck | None
    bounds: tuple[Bound, ...]
    calibration: Calibration
    judged: Judged | None
    disagreements: tuple[Disagreement, ...]
    origins: tuple[tuple[str, int], ...]
    """Who decided the dream's steps, all measures together."""
    doubts: tuple[tuple[str, int], ...]
    """Why steps ended as unknown, rule by rule, all measures together."""
    cost: Cost
    thresholds: Thresholds
    familiar: Figure
    """The share of audited tasks of which the dream's memory holds other episodes."""

    @property
    def figures(self) -> GateFigures:
        """The figures that the gate looks at."""
        return GateFigures.from_plain(self._measures())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why one should not train in this dream; nothing means that one may."""
        return check_gate(self.figures, self.thresholds)

    def _measures(self) -> dict[str, Any]:
        return {
            "one_step": self.one_step.plain(),
            "on_policy": [one.plain() for one in self.on_policy],
            "closed_loop": self.closed_loop.plain(),
        }

    def plain(self) -> dict[str, object]:
        """Return the report for `result.json`."""
        reasons = self.reasons
        return {
            "gate": {
                "open": not reasons,
                "reasons": list(reasons),
                "thresholds": {
                    name: getattr(self.thresholds, name)
                    for name in self.thresholds.__dataclass_fields__
                },
            },
            **self._measures(),
            "luck": self.luck.plain() if self.luck else None,
            "bounds": [bound.plain() for bound in self.bounds],
            "calibration": self.calibration.plain(),
            "judge": self.judged.plain() if self.judged else None,
            "origins": dict(self.origins),
            "unknown_why": dict(self.doubts),
            "familiar_tasks": self.familiar.plain(),
            "cost": {
                "real_steps": self.cost.real_steps,
                "dream_steps": self.cost.dream_steps,
                "seconds": round(self.cost.seconds, 2),
            },
            "disagreements": [one.plain() for one in self.disagreements],
        }
