"""Which runs belong together: the same settings under other seeds. And their curves over seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dreamgym.agents.behaviour import BEHAVIOURS
from dreamgym.eval.seeds import Spread, across_seeds
from dreamgym.page import Point
from dreamgym.report.record import BY_TRIAL, RunRecord
from dreamgym.rollout.summary import wilson

PLACES = frozenset(
    {
        "policy.model", "replay.store", "rl.gate", "rl.store", "rl.world", "audit.world",
        "audit.data", "audit.policies", "eval.policy", "fit.model", "dream.second",
    }
)  # fmt: skip
"""Settings that may name folders: those differ from seed to seed without meaning anything else."""
NAMES = frozenset({"1m", "3m", "10m", "smollm2", "llm", "real", *BEHAVIOURS})
"""What such a setting may say that is no folder, and means the same under every seed."""
ASIDE = frozenset({"seed", "env.workers", "env.time_limit", "rl.threads", "train.threads",
                   "fit.threads", "dpo.threads"})  # fmt: skip
"""Settings on which no result depends, or only by chance."""

SUCCESS, EPISODES = "real/success", "real/episodes"
"""Of a look at reality: the share, and of how many; each also with an ending."""


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
            points.append(self._point(sum(known) / len(known), rows, name, share))
        return tuple(points)

    def _point(
        self, x: float, rows: Sequence[Mapping[str, float]], name: str, share: bool
    ) -> Point:
        values = [row[name] for row in rows]
        spread = across_seeds(values)
        low, high = spread.low, spread.high
        if len(rows) == 1 and name.startswith(SUCCESS):
            # A look may play fewer than were asked for; earlier versions do not say how many.
            asked = self.runs[0].settings.get("rl.eval_episodes", 0)
            episodes = int(rows[0].get(name.replace(SUCCESS, EPISODES), asked))
            if episodes:
                rate = wilson(round(values[0] * episodes), episodes)
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
    """Put runs together that differ by seed and folders only, in the order they were given.

    A group has each seed once: where one would come twice, other folders are another group. Where
    `names` has a name for their folders, those of one name are a group instead.
    """
    found: dict[tuple[Any, ...], list[RunRecord]] = {}
    for run in runs:
        key = (names[run.path],) if run.path in names else _key(run)
        found.setdefault(key, []).append(run)
    members = [
        part
        for group in found.values()
        for part in ([group] if group[0].path in names else _each_seed_once(group))
    ]
    others = iter(_labels([group[0] for group in members if group[0].path not in names]))
    labels = [names.get(group[0].path) or next(others) for group in members]
    return [
        RunGroup(name, tuple(group), colour)
        for colour, (name, group) in enumerate(zip(labels, members, strict=True))
    ]


def _each_seed_once(group: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Part runs where one seed comes twice: by what lies where, and else one by one."""
    parts = [list(group)]
    for told_by in (_folders, lambda run: run.path):
        parts = [
            finer
            for part in parts
            for finer in ([part] if _seeds_differ(part) else _parted(part, told_by))
        ]
    return parts


def _seeds_differ(runs: Sequence[RunRecord]) -> bool:
    return len({run.seed for run in runs}) == len(runs)


def _parted(
    runs: Sequence[RunRecord], told_by: Callable[[RunRecord], object]
) -> list[list[RunRecord]]:
    found: dict[object, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(told_by(run), []).append(run)
    return list(found.values())


def _folders(run: RunRecord) -> tuple[str, ...]:
    """Return the folders of a run; `dream-a-0` under seed 0 is `dream-a-1` under seed 1."""
    own = re.compile(rf"(?<!\d){run.seed}(?!\d)")
    found = {name: str(run.settings.get(name, "")) for name in sorted(PLACES)}
    return tuple(own.sub("*", path) for name, path in found.items() if _is_folder(name, path))


def _key(run: RunRecord) -> tuple[Any, ...]:
    where = where_of(run) if run.kind == BY_TRIAL else ""
    who = str(run.of("policies") or run.of("policy") or "") if run.kind == "eval" else ""
    return (run.kind, run.env, where, who, tuple(sorted(_meant(run).items())))


def _meant(run: RunRecord) -> dict[str, str]:
    """Return what the settings of a run mean: of a folder, only what is asked of it behind `?`."""
    return {
        name: str(value).partition("?")[2] if _is_folder(name, value) else str(value)
        for name, value in run.settings.items()
        if name not in ASIDE
    }


def _is_folder(name: str, value: object) -> bool:
    """Return whether a setting names a folder, and no size, model, world, policy or function."""
    parts = [part.strip() for part in str(value).split(",")]
    return name in PLACES and not all(
        part in NAMES or re.fullmatch(r"[\w.]+:\w+", part) for part in parts
    )


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
            label += f" ({_told_apart(run, twins)})"
        named.append(label)
    return named


def _env_name(run: RunRecord, all_runs: Sequence[RunRecord]) -> str:
    """Return the environment without its parameters, unless they tell it from another one."""
    short = run.env.partition("?")[0]
    namesakes = {one.env for one in all_runs if one.env.partition("?")[0] == short}
    return run.env if len(namesakes) > 1 else short


def _label(run: RunRecord) -> str:
    return f"{run.algo} {where_of(run)}" if run.kind == BY_TRIAL else run.algo


def _told_apart(run: RunRecord, twins: Sequence[RunRecord]) -> str:
    """Say in what a run differs from others; where only folders do, which are its own."""
    mine = _meant(run)
    other = {name for one in twins for name, value in _meant(one).items()
             if mine.get(name) != value}  # fmt: skip
    said = [_said(run, name, twins) for name in sorted(other & mine.keys())][:3]
    alike = [one for one in twins if _meant(one) == mine]
    elsewhere = {name for one in alike for name in PLACES & mine.keys()
                 if one.settings.get(name) != run.settings[name]}  # fmt: skip
    said += [_said(run, name, alike) for name in sorted(elsewhere)][:3]
    again = [str(one.path) for one in alike if _folders(one) == _folders(run)]
    return ", ".join([*said, _ending(str(run.path), again)] if again or not said else said)


def _said(run: RunRecord, name: str, others: Sequence[RunRecord]) -> str:
    """Return a setting in words, a folder by as much of its path as tells it from others."""
    value = str(run.settings[name])
    if _is_folder(name, value):
        value = _ending(value, [str(one.settings.get(name, "")) for one in others])
    return f"{name.partition('.')[2]} {value}"


def _ending(path: str, others: Sequence[str]) -> str:
    parts = Path(path).parts
    for count in range(1, len(parts)):
        if all(Path(one).parts[-count:] != parts[-count:] for one in others if one != path):
            return str(Path(*parts[-count:]))
    return path
