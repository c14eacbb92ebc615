"""What the demo shows while it runs: stages, the time left, the learning curve."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from dreamgym.cli.curve import draw_curve
from dreamgym.cli.display import PLAIN_SECONDS, time_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dreamgym.jobs.demo_result import CurvePoint
    from dreamgym.jobs.stages import Stage, Tick


class DemoView:
    """Shows where the demo stands: in place on a terminal, line by line elsewhere."""

    def __init__(self, console: Console, stages: Sequence[Stage]) -> None:
        self._console, self._stages = console, stages
        self._done: dict[str, str] = {}
        self._began = self._shown = self._entered = time.monotonic()
        self._made = 0.0
        self._now: Tick | None = None
        self._points: list[CurvePoint] = []
        self._live = Live(console=console) if console.is_terminal else None

    def __enter__(self) -> DemoView:
        """Begin to draw."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._points = []  # The whole curve is shown after it.
            self._live.update(self._picture())
            self._live.stop()

    def tick(self, tick: Tick) -> None:
        """Take note of where it stands."""
        name, now = tick.stage.name, time.monotonic()
        first = self._now is None or self._now.stage.name != name
        if first:
            self._entered = now
            self._say(f"{self._place(tick)} {tick.stage.about}")
        self._now = tick
        ended = tick.reused or (tick.share >= 1.0 and not tick.note)
        if ended and name not in self._done:
            self._made += 0.0 if tick.reused else tick.stage.share
            took = "done before" if tick.reused else f"{now - self._entered:.0f} s"
            self._done[name] = took
            self._say(f"{self._place(tick)} {took}; {self._left()}")
        elif not first and now - self._shown > PLAIN_SECONDS:
            self._say(f"{self._place(tick)} {tick.note}; {self._left()}")
        if self._live is not None:
            self._live.update(self._picture(), refresh=first or ended)

    def curve(self, points: Sequence[CurvePoint]) -> None:
        """Show a learning curve from now on."""
        self._points = list(points)

    def _say(self, words: str) -> None:
        """Print a line, where nothing can be drawn in place."""
        if self._live is None:
            self._shown = time.monotonic()
            self._console.print(words, markup=False, highlight=False, soft_wrap=True)

    def _place(self, tick: Tick) -> str:
        number = self._stages.index(tick.stage) + 1
        return f"[{number}/{len(self._stages)} {tick.stage.name}]"

    def _left(self) -> str:
        """Say how much time is left, going by how long the rest usually takes."""
        now = self._now
        going = now.stage.share * now.share if now and now.stage.name not in self._done else 0.0
        made = self._made + going
        open_ = sum(one.share for one in self._stages if one.name not in self._done) - going
        if made < 5.0 or open_ <= 0:
            return "time left not known yet" if open_ > 0 else "that was all"
        return time_left((time.monotonic() - self._began) / made * open_)

    def _picture(self) -> Group:
        drawn = draw_curve(self._points)
        lines = Text()
        if drawn and self._done:
            # With all of them and the curve, a terminal of 24 lines would cut off its legend.
            done = f"{len(self._done)} of {len(self._stages)} stages"
            lines.append(f" ✓ {done}\n", style="green")
        for stage in self._stages:
            going = self._now is not None and self._now.stage is stage
            if stage.name in self._done:
                took = f" ✓ {stage.about} ({self._done[stage.name]})\n"
                lines.append("" if drawn else took, style="green")
            elif going and self._now is not None:
                bar = "━" * round(20 * self._now.share)
                lines.append(f" ▸ {stage.about} {bar:<20} {self._now.note}\n", style="bold")
            else:
                lines.append(f"   {stage.about}\n", style="dim")
        lines.append(self._left(), style="cyan")
        return Group(lines, Text("\n".join(drawn))) if drawn else Group(lines)
