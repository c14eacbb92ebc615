"""Small pictures for the audit's page, drawn by hand as SVG: no library, no script, no network.

They are 360 units wide, so that their letters can be read on a phone, and take their colours from
the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dreamgym.audit.calibration import Bin
from dreamgym.audit.drift import DriftPoint
from dreamgym.audit.interval import Figure

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 12, 36


def bar(figure: Figure, *, low: float = 0.0, high: float = 1.0, limit: float | None = None) -> str:
    """Return a figure as a dot with its interval on a short scale; `limit` is marked."""
    if not figure.known:
        return ""

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return round(4 + 112 * min(1.0, max(0.0, share)), 1)

    parts = [
        f'<svg class="bar" viewBox="0 0 120 16" role="img" aria-label="{escape(str(figure))}">',
        '<line x1="4" y1="8" x2="116" y2="8" class="axis"/>',
    ]
    if limit is not None:
        at = place(limit)
        parts.append(f'<line x1="{at}" y1="1" x2="{at}" y2="15" class="limit"/>')
    first, last = place(figure.low), place(figure.high)
    parts.append(f'<line x1="{first}" y1="8" x2="{last}" y2="8" class="range"/>')
    parts.append(f'<circle cx="{place(figure.mean)}" cy="8" r="3.5" class="dot"/></svg>')
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Frame:
    """A square of axes: horizontal values up to `most`, vertical ones from 0 to 1."""

    most: float
    across: str
    up: str

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * value / (self.most or 1.0), 1)

    def y(self, value: float) -> float:
        """Return where a value between 0 and 1 lies upwards."""
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value, 1)

    def draw(self, inside: Sequence[str], *, ticks: Sequence[float], about: str) -> str:
        """Return the picture with its axes."""
        parts = [
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(about)}">'
        ]
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            y = self.y(share)
            parts.append(
                f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" class="grid"/>'
                f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{share:g}</text>'
            )
        for tick in ticks:
            parts.append(
                f'<text x="{self.x(tick)}" y="{HEIGHT - BOTTOM + 15}" '
                f'text-anchor="middle">{tick:g}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">{escape(self.across)}</text>'
            f'<text transform="translate(11 {HEIGHT / 2 - 10}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.up)}</text>'
        )
        return "".join([*parts, *inside, "</svg>"])


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
