"""Draw columns of `dreamgym bench` as a picture: `python docs/chart.py OUT.svg TABLE.md:ENV ...`.

One panel for each environment, one line for each arm: the mean over seeds with its interval. The
figures are read off the committed tables, so that the picture cannot say anything else.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

LABELS = {
    "random": "act at random",
    "start": "the start",
    "sft": "SFT, same demos for longer",
    "sft-more": "SFT, 40 demos",
    "dpo": "DPO on the record",
    "grpo-dream": "GRPO in the dream",
    "grpo-s2r": "GRPO dream, then real",
    "grpo-real": "GRPO for real",
    "ppo-dream": "PPO in the dream",
    "ppo-s2r": "PPO dream, then real",
    "ppo-real": "PPO for real",
}
"""Arms in the order in which they are drawn, and what a reader calls them."""
TITLES = {
    "coin8": "Coin",
    "coin8-marks": "Coin",
    "map": "MapReader",
    "map-marks": "MapReader",
    "twc": "TWC",
    "alfworld": "ALFWorld",
}
COLOURS = {"dream": "#3b6fd4", "s2r": "#7b4fc9", "real": "#c2632a"}
"""By where one practised; all else is grey."""
GREY, INK, LINE = "#777", "#222", "#ddd"
FIRST, PANEL, GAP, ROW, HEAD, FOOT = 196, 150, 18, 20, 46, 30
"""Widths and heights in units of the picture."""


@dataclass(frozen=True, slots=True)
class Value:
    """A mean with its interval."""

    mean: float
    low: float
    high: float


Table = Mapping[str, Mapping[str, Value]]
"""Values by environment and arm."""


def read_table(text: str) -> dict[str, dict[str, Value]]:
    """Return the first table of a suite's page; cells that are not there are left out."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    envs = rows[0][1 : rows[0].index("seeds")]
    found: dict[str, dict[str, Value]] = {env: {} for env in envs}
    for arm, *cells in rows[2:]:
        if arm not in LABELS or len(cells) < len(envs):
            break
        for env, cell in zip(envs, cells, strict=False):
            numbers = [float(number) for number in re.findall(r"\d+\.\d+", cell)]
            if numbers:
                mean, low, high = numbers if len(numbers) == 3 else numbers[:1] * 3
                found[env][arm] = Value(mean, low, high)
    return found


def draw(table: Table) -> str:
    """Return the picture."""
    arms = [arm for arm in LABELS if any(arm in values for values in table.values())]
    width = FIRST + len(table) * (PANEL + GAP)
    height = HEAD + len(arms) * ROW + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img" '
        f'aria-label="Real success on held-out tasks, by arm and environment">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
        _text(14, 20, "Real success on held-out tasks", weight="bold"),
    ]
    for number, arm in enumerate(arms):
        parts.append(_text(14, HEAD + number * ROW + 14, LABELS[arm], colour=_colour(arm)))
    for number, (env, values) in enumerate(table.items()):
        parts.extend(_panel(FIRST + number * (PANEL + GAP), env, values, arms))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(left: int, env: str, values: Mapping[str, Value], arms: list[str]) -> Iterator[str]:
    name, _, size = env.partition(" ")
    yield _text(left, 38, f"{TITLES.get(name, name)} {size}".strip(), weight="bold")
    bottom = HEAD + len(arms) * ROW
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + tick * PANEL
        yield f'<line x1="{x:g}" y1="{HEAD}" x2="{x:g}" y2="{bottom}" stroke="{LINE}"/>'
        if tick in (0.0, 0.5, 1.0):
            yield _text(x, bottom + 15, f"{tick:g}", anchor="middle", colour=GREY)
    for number, arm in enumerate(arms):
        if arm in values:
            one, y, colour = values[arm], HEAD + number * ROW + 10, _colour(arm)
            low, high, at = (left + v * PANEL for v in (one.low, one.high, one.mean))
            yield (
                f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" '
                f'stroke-width="2.5" stroke-opacity="0.45" stroke-linecap="round"/>'
                f'<circle cx="{at:.1f}" cy="{y}" r="4" fill="{colour}">'
                f"<title>{escape(LABELS[arm])}: {one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"
                f"</title></circle>"
            )


def _colour(arm: str) -> str:
    return COLOURS.get(arm.rpartition("-")[2], GREY) if "-" in arm else GREY


def _text(
    x: float, y: float, words: str, *, colour: str = INK, weight: str = "", anchor: str = ""
) -> str:
    more = f' font-weight="{weight}"' * bool(weight) + f' text-anchor="{anchor}"' * bool(anchor)
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{more}>{escape(words)}</text>'


def chart(*columns: tuple[Path, str]) -> str:
    """Return the picture of columns of committed tables, side by side."""
    return draw({env: read_table(page.read_text("utf-8"))[env] for page, env in columns})


if __name__ == "__main__":
    wanted = [word.rpartition(":") for word in sys.argv[2:]]
    Path(sys.argv[1]).write_text(chart(*((Path(page), env) for page, _, env in wanted)), "utf-8")
