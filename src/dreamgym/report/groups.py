"""Which runs belong together: the same settings under other seeds. And their curves over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dreamgym.eval.seeds import Spread, across_seeds
from dreamgym.page import Point
from dreamgym.report.record import BY_TRIAL, RunRecord
from dreamgym.rollout.summary import wilson

PLACES = frozenset(
    {
        "policy.model", "replay.store", "rl.gate", "rl.store", "rl.world", "audit.world",
        "audit.data", "audit.policies", "eval.policy", "fit.start",
    }
)  # fmt: skip
"""Settings that name files: they differ from seed to seed without meaning anything else."""
ASIDE = frozenset({"seed", "env.workers", "env.time_limit", "rl.threads", "train.threads",
                   "fit.threads", "dpo.threads"})  # fmt: skip
"""Settings on which no result depends, or only by chance."""


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that differ by their seeds."""

    label: str
    runs: tuple[RunRecord, ...]
    colour: int = 0

    @property
    def kind(self) -> str:
        """What sort of runs they are."""
        return self.runs[0].kind

    @property
    def in_dream(self) -> bool:
        """Whether practice was in a dream, at first at least."""
        return self.kind == BY_TRIAL and where_of(self.runs[0]) != "for real"

    def spread(self, value: Callable[[RunRecord], float | None]) -> Spread | None:
        """Return the mean over seeds of something that each run may have."""
        found = [one for one in map(value, self.runs) if one is not None]
        return across_seeds(found) if found else None

    def curve(self, name: str, *, across: str = "step", share: bool = False) -> tuple[Point, ...]:
        """Return a metric by step, or by the mean of another metric at that step.

        With several seeds the interval is the t interval over them; with one, a share of episodes
        in a look at reality has its Wilson interval and anything else none. A step is shown where
        every run that came so far has the figure.
        """
        by_run = [{row["step"]: row for row in run.metrics if name in row} for run in self.runs]
        steps = sorted({step for rows in by_run for step in rows})
        points = []
        for step in steps:
            rows = [found[step] for found in by_run if step in found]
            reached = [found for found in by_run if found and max(found) >= step]
            # Nothing was practised before the first step, so nothing is counted there.
            places = [row.get(across, None if step else 0.0) for row in rows]
            known = [place for place in places if place is not None]
            if len(rows) < len(reached) or len(known) < len(rows):
                continue
            point = self._point(sum(known) / len(known), [row[name] for row in rows], name, share)
            points.append(point)
        return tuple(points)

    def _point(self, x: float, values: Sequence[float], name: str, share: bool) -> Point:
        spread = across_seeds(values)
        low, high = spread.low, spread.high
        episodes = self.runs[0].settings.get("rl.eval_episodes")
        if len(values) == 1 and name.startswith("real/success") and episodes:
            rate = wilson(round(values[0] * episodes), int(episodes))
            low, high = rate.low, rate.high
        if low is not None and high is not None:
            # What never falls below 0, or rises above 1, has no interval there either.
            low = max(0.0, low) if share or min(values) >= 0 else low
            high = min(1.0, high) if share else high
        return Point(x, spread.mean, low, high)


def where_of(run: RunRecord) -> str:
    """Say in words where a policy practised."""
    if run.settings.get("rl.world", "real") == "real":
        return "for real"
    return "in a dream, then for real" if run.settings.get("rl.then_real") else "in a dream"


def group_runs(
    runs: Sequence[RunRecord], names: Mapping[Path, str] = MappingProxyType({})
) -> list[RunGroup]:
    """Put runs together that differ by seed and places only, in the order they were given.

    Where `names` has a name for their folders, those of one name are a group instead.
    """
    found: dict[tuple[Any, ...], list[RunRecord]] = {}
    for run in runs:
        key = (names[run.path],) if run.path in names else _key(run)
        found.setdefault(key, []).append(run)
    members = list(found.values())
    others = iter(_labels([group[0] for group in members if group[0].path not in names]))
    labels = [names.get(group[0].path) or next(others) for group in members]
    return [
        RunGroup(name, tuple(group), colour)
        for colour, (name, group) in enumerate(zip(labels, members, strict=True))
    ]


def _key(run: RunRecord) -> tuple[Any, ...]:
    kept = {name: str(value) for name, value in run.settings.items()
            if name not in PLACES and name not in ASIDE}  # fmt: skip
    where = where_of(run) if run.kind == BY_TRIAL else ""
    who = str(run.of("policies") or run.of("policy") or "") if run.kind == "eval" else ""
    return (run.kind, run.env, where, who, tuple(sorted(kept.items())))


def _labels(firsts: Sequence[RunRecord]) -> list[str]:
    """Return a name for each group; where two would have the same, what differs is added."""
    plain = [_label(run) for run in firsts]
    several_envs = len({run.env for run in firsts}) > 1
    named = []
    for place, run in enumerate(firsts):
        label = plain[place]
        if several_envs:
            label += f", {_env_name(run, firsts)}"
        twins = [
            other for spot, other in enumerate(firsts)
            if spot != place and plain[spot] == plain[place] and other.env == run.env
        ]  # fmt: skip
        if twins:
            label += f" ({_differences(run, twins) or run.name})"
        named.append(label)
    return named


def _env_name(run: RunRecord, all_runs: Sequence[RunRecord]) -> str:
    """Return the environment without its parameters, unless they tell it from another one."""
    short = run.env.partition("?")[0]
    namesakes = {one.env for one in all_runs if one.env.partition("?")[0] == short}
    return run.env if len(namesakes) > 1 else short


def _label(run: RunRecord) -> str:
    return f"{run.algo} {where_of(run)}" if run.kind == BY_TRIAL else run.algo


def _differences(run: RunRecord, others: Sequence[RunRecord]) -> str:
    def of(one: RunRecord) -> Mapping[str, Any]:
        return {name: value for name, value in one.settings.items()
                if name not in PLACES and name not in ASIDE}  # fmt: skip

    mine = of(run)
    names = {name for other in others for name, value in of(other).items()
             if mine.get(name) != value}  # fmt: skip
    shown = [f"{name.partition('.')[2]} {mine[name]}" for name in sorted(names) if name in mine]
    return ", ".join(shown[:3])
