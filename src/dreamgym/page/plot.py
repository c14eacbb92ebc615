"""Small pictures drawn by hand as SVG: no library, no script, no network.

They are 360 units wide, so that their letters can be read on a phone, and take their colours from
the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 12, 36
COLOURS = 8
"""The style sheet has so many; further curves begin again with the first."""
MOST_BANDS = 4
"""Colours with bands; of more, none has one."""
MARKED = 12
"""Curves of more points than this are drawn without dots on them."""


def interval_bar(
    mean: float,
    low: float,
    high: float,
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    limit: float | None = None,
    about: str = "",
) -> str:
    """Return a mean as a dot with its interval on a short scale; `limit` is marked."""
    least, most = scale

    def place(value: float) -> float:
        share = (value - least) / (most - least)
        return round(4 + 112 * min(1.0, max(0.0, share)), 1)

    parts = [
        f'<svg class="bar" viewBox="0 0 120 16" role="img" aria-label="{escape(about)}">',
        '<line x1="4" y1="8" x2="116" y2="8" class="axis"/>',
    ]
    if limit is not None:
        at = place(limit)
        parts.append(f'<line x1="{at}" y1="1" x2="{at}" y2="15" class="limit"/>')
    first, last = place(low), place(high)
    parts.append(f'<line x1="{first}" y1="8" x2="{last}" y2="8" class="range"/>')
    parts.append(f'<circle cx="{place(mean)}" cy="8" r="3.5" class="dot"/></svg>')
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Frame:
    """A square of axes: across from `least` to `most`, upwards from `low` to `high`."""

    most: float
    across: str
    up: str
    least: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        share = (value - self.least) / ((self.most - self.least) or 1.0)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)

    def y(self, value: float) -> float:
        """Return where a value lies upwards; one outside the frame lies on its edge."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        inside = min(1.0, max(0.0, share))
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * inside, 1)

    def draw(self, inside: Sequence[str], *, ticks: Sequence[float], about: str) -> str:
        """Return the picture with its axes."""
        parts = [
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(about)}">'
        ]
        for value in self._heights():
            y = self.y(value)
            parts.append(
                f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" class="grid"/>'
                f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{short(value)}</text>'
            )
        for tick in ticks:
            parts.append(
                f'<text x="{self.x(tick)}" y="{HEIGHT - BOTTOM + 15}" '
                f'text-anchor="middle">{short(tick)}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">{escape(self.across)}</text>'
            f'<text transform="translate(11 {HEIGHT / 2 - 10}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.up)}</text>'
        )
        return "".join([*parts, *inside, "</svg>"])

    def _heights(self) -> tuple[float, ...]:
        if (self.low, self.high) == (0.0, 1.0):
            return (0.0, 0.25, 0.5, 0.75, 1.0)
        return nice_ticks(self.low, self.high, wanted=4)


@dataclass(frozen=True, slots=True)
class Point:
    """A mean at some place, with its interval where there is one."""

    x: float
    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve."""

    name: str
    points: tuple[Point, ...]
    colour: int = 0
    dashed: bool = False


def curve_plot(
    curves: Sequence[Series],
    *,
    across: str,
    up: str,
    between: tuple[float, float] | None = None,
    about: str = "",
) -> str:
    """Return curves with their intervals as bands; `between` fixes what is shown upwards.

    Of many colours there are no bands: one over the other, they hide what they are to show.
    """
    curves = [one for one in curves if one.points]
    if not curves:
        return ""
    places = [point.x for one in curves for point in one.points]
    low, high = between or _reach(curves)
    frame = Frame(max(places), across, up, least=min(0.0, *places, 0.0), low=low, high=high)
    banded = curves if len({one.colour for one in curves}) <= MOST_BANDS else ()
    inside = [_band(frame, one) for one in banded] + [_line(frame, one) for one in curves]
    ends = "; ".join(f"{one.name}: {one.points[-1].mean:.3g}" for one in curves)
    return frame.draw(
        inside,
        ticks=nice_ticks(frame.least, frame.most, wanted=5),
        about=about or f"{up} by {across}, at the end {ends}",
    )


def legend(curves: Sequence[Series]) -> str:
    """Return what the colours mean."""
    shown = [one for one in curves if one.points]
    keys = "".join(
        f"<span class='key'><i class='c{one.colour % COLOURS}{' dashed' if one.dashed else ''}'>"
        f"</i>{escape(one.name)}</span>"
        for one in shown
    )
    return f"<p class='legend'>{keys}</p>" if keys else ""


def _reach(curves: Sequence[Series]) -> tuple[float, float]:
    """Return what has to be shown upwards, 0 among it unless that is far off."""
    values = [
        value
        for one in curves
        for point in one.points
        for value in (point.mean, point.low, point.high)
        if value is not None and math.isfinite(value)
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(low, 0.0) if low < high / 2 or low == high else low
    if low == high:
        high = low + 1.0
    ticks = nice_ticks(low, high, wanted=4)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _band(frame: Frame, one: Series) -> str:
    known = [p for p in one.points if p.low is not None and p.high is not None]
    if len(known) < 2:
        return ""
    above = [f"{frame.x(p.x)} {frame.y(p.high or 0.0)}" for p in known]
    below = [f"{frame.x(p.x)} {frame.y(p.low or 0.0)}" for p in reversed(known)]
    return f'<path d="M{"L".join([*above, *below])}Z" class="band c{one.colour % COLOURS}"/>'


def _line(frame: Frame, one: Series) -> str:
    colour = f"c{one.colour % COLOURS}{' dashed' if one.dashed else ''}"
    places = "L".join(f"{frame.x(p.x)} {frame.y(p.mean)}" for p in one.points)
    parts = [f'<path d="M{places}" class="curve {colour}"/>'] if len(one.points) > 1 else []
    if len(one.points) <= MARKED:
        parts += [
            f'<circle cx="{frame.x(p.x)}" cy="{frame.y(p.mean)}" r="{2.6 if len(parts) else 4}" '
            f'class="mark {colour}"><title>{escape(_words(one.name, p))}</title></circle>'
            for p in one.points
        ]
    return "".join(parts)


def _words(name: str, point: Point) -> str:
    known = point.low is not None and point.high is not None
    reach = f" ({point.low:.3g} to {point.high:.3g})" if known else ""
    return f"{name} at {point.x:g}: {point.mean:.3g}{reach}"


def nice_ticks(low: float, high: float, *, wanted: int) -> tuple[float, ...]:
    """Return about so many round numbers between two values."""
    if not high > low:
        return (low,)
    rough = (high - low) / wanted
    if rough < _FINEST:
        return (low,)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    # Round numbers may miss the ends by rounding, never by more: what is outside is not drawn.
    slack = min(1e-9 * step, 1e-7)
    first, last = math.ceil((low - slack) / step), math.floor((high + slack) / step)
    return tuple(round(number * step, 12) for number in range(first, last + 1))


_FINEST = 1e-12
"""Between values that are nearer to one another than this there is nothing to mark."""


def short(value: float) -> str:
    """Return a number as an axis shows it: 12k for 12000."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and value % size == 0):
            return f"{value / size:g}{letter}"
    return f"{value:g}"
