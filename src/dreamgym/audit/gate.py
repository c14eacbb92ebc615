"""May one train in this dream? Thresholds, and the reasons why not.

`train` asks here before it starts, with the figures of an audit that was made before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a dream must reach before a policy is trained in it."""

    min_precision: float = 0.9
    """On-policy: of the successes in the dream, the share that is real."""
    min_wins: int = 5
    """On-policy: successes in the dream that this share must be based on."""
    max_gap: float = 0.1
    """On-policy: success in the dream minus real success, either way."""
    max_false_success: float = 0.02
    """One-step: of the steps that do not succeed, the share that succeeds in the dream."""
    min_refused: float = 0.97
    """One-step: of the actions that reality refuses, the share that the dream refuses."""
    min_agreement: float = 0.9
    """Closed loop: episodes with the same outcome in both worlds."""
    max_unknown: float = 0.5
    """On-policy and closed loop: episodes that ended as unknown; they support no other figure."""
    max_failed: float = 0.2
    """On-policy and closed loop: episodes that broke; they support no other figure."""


@dataclass(frozen=True, slots=True)
class GateFigures:
    """The figures that the gate looks at; None where one was not measured."""

    precision: float | None = None
    wins: int = 0
    gap: float | None = None
    false_success: float | None = None
    invalid_refused: float | None = None
    agreement: float | None = None
    unknown: float = 0.0
    failed: float = 0.0

    @classmethod
    def from_plain(cls, result: Mapping[str, Any]) -> GateFigures:
        """Read the figures from an audit's `result.json`."""
        step, loop = result["one_step"], result["closed_loop"]
        # Several policies: each must do, so the worst of each figure counts.
        policies = list(result["on_policy"])
        episodes = [loop, *policies]
        return cls(
            precision=_worst(min, [one["precision"]["mean"] for one in policies]),
            wins=min((one["precision"]["count"] for one in policies), default=0),
            gap=_worst(lambda gaps: max(gaps, key=abs), [one["gap"]["mean"] for one in policies]),
            false_success=step["false_success"]["mean"],
            invalid_refused=step["invalid_refused"]["mean"],
            agreement=loop["agreement"]["mean"],
            unknown=max(one["unknown"] / max(one["episodes"], 1) for one in episodes),
            failed=max(one["failed"] / max(one["episodes"], 1) for one in episodes),
        )


def _worst(choose: Any, values: list[float | None]) -> float | None:
    """Return the worst value; one that was not measured is worse than any."""
    if not values or any(value is None for value in values):
        return None
    worst: float = choose(values)
    return worst


def read_audit(path: Path) -> GateFigures:
    """Read the figures of an audit from its run directory or its `result.json`."""
    return read_audited(path)[0]


def read_audited(path: Path) -> tuple[GateFigures, dict[str, Any]]:
    """Read the figures of an audit, and its whole result, which says what was audited."""
    file = path / "result.json" if path.is_dir() else path
    try:
        result = json.loads(file.read_text("utf-8"))
        return GateFigures.from_plain(result), result
    except FileNotFoundError as error:
        raise ConfigError(
            f"there is no audit at {file}; `dreamgym audit --world ... --data ... --out {path}` "
            "makes one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} is not the result of an audit: {error!r}") from error


def check_gate(figures: GateFigures, thresholds: Thresholds) -> tuple[str, ...]:
    """Return why one should not train in the dream; nothing means that the gate is open."""
    wanted = thresholds
    reasons = [
        _below("on-policy precision", figures.precision, wanted.min_precision),
        _few_wins(figures, wanted),
        _above(
            "the gap between dream and real success",
            None if figures.gap is None else abs(figures.gap),
            wanted.max_gap,
        ),
        _above("one-step false success", figures.false_success, wanted.max_false_success),
        _below("the share of invalid actions refused", figures.invalid_refused, wanted.min_refused),
        _below("closed-loop outcome agreement", figures.agreement, wanted.min_agreement),
        _above("the share of unknown episodes", figures.unknown, wanted.max_unknown),
        _above("the share of failed episodes", figures.failed, wanted.max_failed),
    ]
    return tuple(reason for reason in reasons if reason)


def _few_wins(figures: GateFigures, wanted: Thresholds) -> str:
    if figures.precision is None or figures.wins >= wanted.min_wins:
        return ""
    return (
        f"on-policy precision stands on {figures.wins} successes in the dream, "
        f"{wanted.min_wins} are needed: play more episodes"
    )


def _below(name: str, value: float | None, least: float) -> str:
    if value is None:
        return f"{name} was not measured"
    return f"{name} is {value:.3f}, at least {least:g} is needed" if value < least else ""


def _above(name: str, value: float | None, most: float) -> str:
    if value is None:
        return f"{name} was not measured"
    return f"{name} is {value:.3f}, at most {most:g} is allowed" if value > most else ""
