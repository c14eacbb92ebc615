"""Which figure of an audit predicts how far real success rises? Rank correlations over dreams.

Dreams are ranked among those of their own seed: seeds differ in what their start leaves to gain,
and that is nothing an audit could foretell.
"""

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


def _told_rightly(result: Mapping[str, Any]) -> float | None:
    """Return the share of all episodes whose outcome is told as it is for real.

    What the dream gave up on counts as not told.
    """
    policy = result["on_policy"][0]
    agreed = policy["agreement"]
    mean = _number(agreed["mean"])
    if not policy["episodes"]:
        return None
    return 0.0 if mean is None else mean * agreed["count"] / policy["episodes"]


FIGURES: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "false success": _of_step("false_success"),
    "exact": _of_step("exact"),
    "invalid refused": _of_step("invalid_refused"),
    "valid refused": _of_step("valid_refused"),
    "agreement": lambda result: _number(result["closed_loop"]["agreement"]["mean"]),
    "precision": _of_policy("precision"),
    "recall": _of_policy("recall"),
    "gap, absolute": _apart,
    "unknown": _share("unknown"),
    "failed": _share("failed"),
    "told rightly": _told_rightly,
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
    """Spearman's, by ranks within seeds; None where no seed tells its dreams apart, or too few have
    the figure."""
    low: float | None
    high: float | None
    """95 %, dreams of each seed drawn again."""
    dreams: int

    def plain(self) -> dict[str, Any]:
        """Return it for a JSON file."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Audited:
    """One dream: what its audit found, and what came of learning in it."""

    env: str
    seed: int
    figures: Mapping[str, float | None]
    rise: float


def rank_predictors(dreams: Sequence[Audited]) -> list[Predictor]:
    """Return a predictor for each environment and figure."""
    found = []
    for env in dict.fromkeys(dream.env for dream in dreams):
        for figure in FIGURES:
            by_seed: dict[int, list[tuple[float, float]]] = {}
            for dream in dreams:
                if dream.env == env and (value := dream.figures.get(figure)) is not None:
                    by_seed.setdefault(dream.seed, []).append((value, dream.rise))
            pairs = list(by_seed.values())
            mean, low, high = rank_interval(pairs, seed=derive_seed("predict", env, figure))
            found.append(Predictor(env, figure, mean, low, high, sum(map(len, pairs))))
    return found


def rank_interval(
    by_seed: Sequence[Sequence[tuple[float, float]]], *, seed: int
) -> tuple[float | None, float | None, float | None]:
    """Return the rank correlation within seeds, with a 95 % interval from drawing pairs again.

    Args:
        by_seed: pairs of a figure and a rise, those of each seed together.
        seed: of the draws.
    """
    import numpy as np  # here, since every command line would load it

    from dreamgym.audit.ranks import spearman_within

    tables = [np.array(pairs, dtype=np.float64) for pairs in by_seed]
    if sum(map(len, tables)) < FEWEST:
        return None, None, None
    mean = spearman_within(tables)
    if math.isnan(mean):
        return None, None, None
    rng = np.random.default_rng(seed)
    again = (
        [table[rng.integers(0, len(table), len(table))] for table in tables] for _ in range(DRAWS)
    )
    # Draws without any order in one column say nothing about how alike the orders are.
    drawn = [value for one in again if not math.isnan(value := spearman_within(one))]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return mean, float(low), float(high)
