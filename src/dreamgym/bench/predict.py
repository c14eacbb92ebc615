"""Which figure of an audit predicts how far real success rises? Rank correlations over dreams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dreamgym.types import derive_seed

DRAWS = 1000
FEWEST = 4
"""Dreams below which an order says nothing."""


def _of_step(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: _number(result["one_step"][name]["mean"])


def _of_policy(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: _number(result["on_policy"][0][name]["mean"])


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _apart(result: Mapping[str, Any]) -> float | None:
    gap = _of_policy("gap")(result)
    return None if gap is None else abs(gap)


def _share(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    def read(result: Mapping[str, Any]) -> float | None:
        policy = result["on_policy"][0]
        return policy[name] / policy["episodes"] if policy["episodes"] else None

    return read


FIGURES: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "false success": _of_step("false_success"),
    "exact": _of_step("exact"),
    "invalid refused": _of_step("invalid_refused"),
    "agreement": lambda result: _number(result["closed_loop"]["agreement"]["mean"]),
    "precision": _of_policy("precision"),
    "recall": _of_policy("recall"),
    "gap, absolute": _apart,
    "unknown": _share("unknown"),
    "failed": _share("failed"),
}
"""What is read off an audit: one step, closed loop, and on the actions of the start."""


def audit_figures(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures of an audit's `result.json`; None where one was not measured."""
    if not result.get("on_policy"):
        return dict.fromkeys(FIGURES)
    return {name: read(result) for name, read in FIGURES.items()}


@dataclass(frozen=True, slots=True)
class Predictor:
    """How well one figure of an audit orders dreams by the rise in real success."""

    env: str
    figure: str
    correlation: float | None
    """Spearman's; None where all dreams have the same figure, or too few have it."""
    low: float | None
    high: float | None
    """95 %, dreams drawn again."""
    dreams: int

    def plain(self) -> dict[str, Any]:
        """Return it for a JSON file."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Audited:
    """One dream: what its audit found, and what came of learning in it."""

    env: str
    figures: Mapping[str, float | None]
    rise: float


def rank_predictors(dreams: Sequence[Audited]) -> list[Predictor]:
    """Return a predictor for each environment and figure."""
    found = []
    for env in dict.fromkeys(dream.env for dream in dreams):
        for figure in FIGURES:
            both = [
                (value, dream.rise)
                for dream in dreams
                if dream.env == env and (value := dream.figures.get(figure)) is not None
            ]
            mean, low, high = rank_interval(both, seed=derive_seed("predict", env, figure))
            found.append(Predictor(env, figure, mean, low, high, len(both)))
    return found


def rank_interval(
    pairs: Sequence[tuple[float, float]], *, seed: int
) -> tuple[float | None, float | None, float | None]:
    """Return Spearman's correlation with a 95 % interval from drawing the pairs again."""
    import numpy as np  # here, since every command line would load it

    from dreamgym.audit.ranks import spearman

    if len(pairs) < FEWEST:
        return None, None, None
    table = np.array(pairs, dtype=np.float64)
    mean = spearman(table[:, 0], table[:, 1])
    if math.isnan(mean):
        return None, None, None
    rng = np.random.default_rng(seed)
    again = (table[rng.integers(0, len(table), len(table))] for _ in range(DRAWS))
    # Draws without any order in one column say nothing about how alike the orders are.
    drawn = [value for one in again if not math.isnan(value := spearman(one[:, 0], one[:, 1]))]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return mean, float(low), float(high)
