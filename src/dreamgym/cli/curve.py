"""A learning curve in letters: success by step, in the dream and for real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dreamgym.jobs.demo_result import CurvePoint

HEIGHT, WIDTH = 9, 60
PRACTISED, PRACTISED_REAL, REAL = "·", "+", "●"
LEGEND = f"{REAL} real, dev tasks   {PRACTISED} practised in the dream"
LEGEND_REAL = f"   {PRACTISED_REAL} practised for real"


def draw_curve(points: Sequence[CurvePoint], *, last: int = 0) -> list[str]:
    """Return the lines of the picture; `last` is the last step that there is to be room for."""
    if not points:
        return []
    most = max(last, points[-1].step, 1)
    grid = [[" "] * (WIDTH + 1) for _ in range(HEIGHT)]

    def put(step: int, value: float | None, mark: str) -> None:
        if value is not None:
            row = round((1.0 - min(1.0, max(0.0, value))) * (HEIGHT - 1))
            grid[row][round(step * WIDTH / most)] = mark

    for one in points:
        put(one.step, one.practised, PRACTISED_REAL if one.for_real else PRACTISED)
    for one in points:
        # What counts is drawn last, over everything else.
        put(one.step, one.real, REAL)
    lines = []
    for number, row in enumerate(grid):
        value = 1.0 - number / (HEIGHT - 1)
        label = f"{value:4.2f}" if number % 2 == 0 else "    "
        lines.append(f"{label} ┤{''.join(row)}".rstrip())
    lines.append("     └" + "─" * (WIDTH + 1))
    steps = f"step {most}"
    lines.append("      0" + steps.rjust(WIDTH))
    return [*lines, LEGEND + (LEGEND_REAL if any(one.for_real for one in points) else "")]
