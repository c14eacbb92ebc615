"""What two worlds make of the same actions: precision, recall and the gap of success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.retell import Pair


@dataclass(frozen=True, slots=True)
class OutcomeFigures:
    """What two worlds make of the same actions."""

    precision: Figure
    """Of the successes in the dream, how many are real."""
    recall: Figure
    """Of the real successes, how many the dream shows."""
    agreement: Figure
    """Episodes with the same outcome."""
    dream_success: Figure
    real_success: Figure
    gap: Figure
    """Success in the dream minus real success, episode by episode."""

    def plain(self) -> dict[str, object]:
        """Return the figures for a JSON file."""
        return {name: getattr(self, name).plain() for name in self.__dataclass_fields__}


def outcome_figures(pairs: Sequence[Pair]) -> OutcomeFigures:
    """Compare outcomes; pairs of which one broke or ended as unknown must be left out before."""
    won = [(pair.real.task.id, pair.dream.success, pair.real.success) for pair in pairs]
    return OutcomeFigures(
        precision=ratio((task, told and true, told) for task, told, true in won),
        recall=ratio((task, told and true, true) for task, told, true in won),
        agreement=ratio((task, told == true, 1) for task, told, true in won),
        dream_success=ratio((task, told, 1) for task, told, _ in won),
        real_success=ratio((task, true, 1) for task, _, true in won),
        gap=ratio(((task, float(told) - true, 1) for task, told, true in won), signed=True),
    )
