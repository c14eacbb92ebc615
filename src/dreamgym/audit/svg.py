"""The audit's own pictures: drift, calibration, policies in both worlds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dreamgym.audit.calibration import Bin
from dreamgym.audit.drift import DriftPoint
from dreamgym.audit.interval import Figure
from dreamgym.page import Frame, interval_bar


def bar(figure: Figure, *, low: float = 0.0, high: float = 1.0, limit: float | None = None) -> str:
    """Return a figure as a dot with its interval on a short scale; `limit` is marked."""
    if not figure.known:
        return ""
    return interval_bar(
        figure.mean,
        figure.low,
        figure.high,
        scale=(low, high),
        limit=limit,
        about=str(figure),
    )


def drift_plot(curve: Sequence[DriftPoint]) -> str:
    """Return the share of episodes that still agree with reality, step by step."""
    if not curve:
        return ""
    last = curve[-1].step
    frame = Frame(last, "step", "share still true")
    path = f"M{frame.x(0)} {frame.y(1)}"
    for point in curve:
        path += f"H{frame.x(point.step)}V{frame.y(point.share)}"
    every = max(1, round(last / 6))
    return frame.draw(
        [f'<path d="{path}" class="curve"/>'],
        ticks=range(0, last + 1, every),
        about=f"after {last} steps {curve[-1].share:.0%} of the episodes still agree",
    )


def calibration_plot(bins: Sequence[Bin]) -> str:
    """Return being right against confidence; a dot's area is the share of replies it stands for."""
    if not bins:
        return ""
    frame = Frame(1.0, "confidence of the reply", "share right")
    total = sum(one.right.count for one in bins)
    parts = [
        f'<line x1="{frame.x(0)}" y1="{frame.y(0)}" x2="{frame.x(1)}" y2="{frame.y(1)}" '
        'class="ideal"/>'
    ]
    for one in bins:
        x = frame.x(one.confidence)
        radius = round(2.5 + 11 * (one.right.count / total) ** 0.5, 1)
        parts.append(
            f'<line x1="{x}" y1="{frame.y(one.right.low)}" x2="{x}" y2="{frame.y(one.right.high)}" '
            'class="range"/>'
            f'<circle cx="{x}" cy="{frame.y(one.right.mean)}" r="{radius}" class="dot soft"/>'
        )
    return frame.draw(parts, ticks=(0, 0.25, 0.5, 0.75, 1), about="confidence and being right")


def policy_plot(policies: Sequence[tuple[str, Figure, Figure]]) -> str:
    """Return policies by real success (across) and success in the dream (upwards)."""
    known = [one for one in policies if one[1].known and one[2].known]
    if not known:
        return ""
    frame = Frame(1.0, "real success", "success in the dream")
    parts = [
        f'<line x1="{frame.x(0)}" y1="{frame.y(0)}" x2="{frame.x(1)}" y2="{frame.y(1)}" '
        'class="ideal"/>'
    ]
    for name, dream, real in known:
        x, y = frame.x(real.mean), frame.y(dream.mean)
        flip = real.mean > 0.7
        parts.append(
            f'<line x1="{frame.x(real.low)}" y1="{y}" x2="{frame.x(real.high)}" y2="{y}" '
            f'class="range thin"/><line x1="{x}" y1="{frame.y(dream.low)}" x2="{x}" '
            f'y2="{frame.y(dream.high)}" class="range thin"/>'
            f'<circle cx="{x}" cy="{y}" r="4" class="dot"/>'
            f'<text x="{x - 7 if flip else x + 7}" y="{y - 5}" '
            f'text-anchor="{"end" if flip else "start"}">{escape(name[-28:])}</text>'
        )
    return frame.draw(parts, ticks=(0, 0.25, 0.5, 0.75, 1), about="policies in both worlds")
