"""How long a dream stays true: the share of episodes that still agree with reality at each step.

Episodes end at different steps, so the share is a product of step-wise shares over the episodes
that still agree and still go on (Kaplan and Meier's estimate): short episodes do not flatter it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dreamgym.audit.interval import Figure, ratio
from dreamgym.audit.likeness import same_state
from dreamgym.audit.retell import Pair
from dreamgym.rollout.groups import ended_unknown
from dreamgym.types import StepResult


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """One step of the curve."""

    step: int
    """Counted from 1."""
    agreeing: int
    """Episodes that agreed so far and have this step."""
    drifted: int
    """Those of them that part from reality here."""
    share: float
    """The estimated share of episodes that still agree after this step."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Where the dream parts from reality."""

    curve: tuple[DriftPoint, ...]
    per_step: Figure
    """Of the steps taken while both worlds agreed, the share at which they parted."""
    state_error: Figure
    """The same, counting next states alone."""
    reward_error: Figure
    """The same, counting outcomes alone."""
    by_verb: tuple[tuple[str, int, int], ...]
    """First words of actions: how often the worlds parted there, of how many times."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        return {
            "per_step": self.per_step.plain(),
            "state_error": self.state_error.plain(),
            "reward_error": self.reward_error.plain(),
            "curve": [
                {
                    "step": point.step,
                    "agreeing": point.agreeing,
                    "drifted": point.drifted,
                    "share": round(point.share, 6),
                }
                for point in self.curve
            ],
            "by_verb": {verb: {"parted": bad, "of": all_} for verb, bad, all_ in self.by_verb},
        }


def differs(told: StepResult, true: StepResult) -> bool:
    """Say whether two answers differ in state, refusal, end or success."""
    flags = (told.refused, told.terminated, told.success)
    return flags != (true.refused, true.terminated, true.success) or not same_state(
        told.observation.text, true.observation.text
    )


def first_difference(pair: Pair) -> tuple[int | None, int]:
    """Return the step at which the worlds part, or None, and how many steps can be compared.

    Only steps that both worlds answered count; a dream that ends as unknown says nothing at its
    last step.
    """
    told, true = pair.dream.steps, pair.real.steps
    compared = min(len(told) - ended_unknown(pair.dream), len(true))
    for index in range(compared):
        if differs(told[index].result, true[index].result):
            return index, index + 1
    return None, compared


def measure_drift(pairs: Sequence[Pair]) -> Drift:
    """Return how far the dreams of these pairs stay true; pairs that broke are left out."""
    found = [(pair, *first_difference(pair)) for pair in pairs if not pair.failed]
    longest = max((compared for _, _, compared in found), default=0)
    curve, share = [], 1.0
    for step in range(longest):
        agreeing = sum(compared > step for _, _, compared in found)
        drifted = sum(first == step for _, first, _ in found)
        share *= 1.0 - drifted / agreeing
        curve.append(DriftPoint(step + 1, agreeing, drifted, share))
    rows, states, rewards = [], [], []
    verbs: Counter[str] = Counter()
    parted: Counter[str] = Counter()
    for pair, first, compared in found:
        for index in range(compared):
            told, true = pair.dream.steps[index].result, pair.real.steps[index].result
            task, verb = pair.real.task.id, _verb(pair.real.steps[index].action.text)
            verbs[verb] += 1
            parted[verb] += first == index
            rows.append((task, float(first == index), 1.0))
            wrong = not same_state(told.observation.text, true.observation.text)
            states.append((task, float(wrong), 1.0))
            rewards.append((task, float(told.success != true.success), 1.0))
    order = sorted(verbs, key=lambda verb: (-parted[verb], verb))
    return Drift(
        curve=tuple(curve),
        per_step=ratio(rows),
        state_error=ratio(states),
        reward_error=ratio(rewards),
        by_verb=tuple((verb, parted[verb], verbs[verb]) for verb in order),
    )


def _verb(action: str) -> str:
    return (action.split() or ["(nothing)"])[0][:24]
