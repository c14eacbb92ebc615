"""From finished stages to tables: success over seeds, paired tests, real transitions, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dreamgym.bench.ground import HELD
from dreamgym.bench.predict import Audited, Predictor, audit_figures, rank_predictors
from dreamgym.bench.run import TIMES
from dreamgym.bench.suite import Cell, Stage, Suite
from dreamgym.eval.seeds import Paired, Spread, across_seeds, compare_paired
from dreamgym.report.record import RunRecord, read_run
from dreamgym.runs import read_json_lines


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell came to."""

    env: str
    arm: str
    seed: int
    success: float | None
    """On held-out real tasks; None where the cell is not finished."""
    episodes: int = 0
    offline: int = 0
    """Recorded real transitions that its policy or its dream learnt from or remembers with."""
    online: int = 0
    """Real transitions that were practised on."""
    evaluation: int = 0
    """Real transitions of looks, audits and the evaluation: learnt from by nobody."""
    seconds: float = 0.0
    """Of all its stages, shared ones too."""
    looks: tuple[tuple[float, float, float], ...] = ()
    """Of each look at reality while training: online transitions, success, seconds so far."""
    start: float | None = None
    """Success of what it began from, where the suite asks for it."""
    audit: Mapping[str, float | None] = field(default_factory=dict)
    """What its dream's audit found, where the suite asks for it."""
    gate: str = ""
    """Whether that audit opened the gate: `open`, `shut`, or nothing where none was asked for."""
    failed: int = 0
    """Episodes of the evaluation that broke, and count neither way."""
    packages: str = ""
    """What the evaluation was run with; nothing where it was not written down."""
    averaged: bool = False
    """Whether transitions and seconds are means over the arm's seeds: its own are not on record."""
    note: str = ""
    """What else there is to know of it."""

    @property
    def rise(self) -> float | None:
        """How far success rose from the start."""
        return None if self.success is None or self.start is None else self.success - self.start

    def seconds_at(self, look: int) -> float:
        """Return the time of everything until a look: of records, fits and audits, too.

        What is not practice is counted before it, all of it: also the evaluation that comes after,
        and attempts of stages that were cut off.
        """
        before = max(0.0, self.seconds - self.looks[-1][2])
        return before + self.looks[look][2]


@dataclass(frozen=True, slots=True)
class Needed:
    """What one arm needed to come to where another ended, by looks at reality."""

    ended: CellResult
    """The other; its last look is the level."""
    online: float | None
    """Real transitions practised on at the first look that reached the level; None if none did."""
    seconds: float | None
    """Of everything until then, as `CellResult.seconds_at` has it."""

    @property
    def level(self) -> float:
        """The success that was to be reached."""
        return self.ended.looks[-1][1]

    @property
    def times(self) -> float | None:
        """How many online transitions it needed for each one of the other, which had some."""
        if self.online is None or not self.ended.online:
            return None
        return self.online / self.ended.online


@dataclass(frozen=True, slots=True)
class BenchTable:
    """A suite's figures."""

    suite: Suite
    cells: tuple[CellResult, ...]

    def of(self, arm: str, env: str | None = None) -> list[CellResult]:
        """Return the finished cells of an arm, in one environment or in all."""
        return [
            cell for cell in self.cells
            if cell.arm == arm and env in (None, cell.env) and cell.success is not None
        ]  # fmt: skip

    def success(self, arm: str, env: str) -> Spread | None:
        """Return success of an arm over seeds."""
        values = [cell.success for cell in self.of(arm, env) if cell.success is not None]
        return across_seeds(values).within(0.0, 1.0) if values else None

    @property
    def compared_in(self) -> tuple[str | None, ...]:
        """Where arms are compared: in each column, and over all of them where that means anything.

        A policy that is judged in several columns is one observation, not several.
        """
        envs = self.suite.envs
        return (*envs, None) if len(envs) > 1 and self.suite.separate else envs

    def paired(self, ours: str, theirs: str, env: str | None = None) -> Paired | None:
        """Compare two arms where both are finished; without an environment, over all of them."""
        other = {(cell.env, cell.seed): cell.success for cell in self.of(theirs, env)}
        both = [
            (cell.success, other[cell.env, cell.seed])
            for cell in self.of(ours, env)
            if (cell.env, cell.seed) in other
        ]
        if not both:
            return None
        return compare_paired([one or 0.0 for one, _ in both], [two or 0.0 for _, two in both])

    def needed(self, level_of: str, by: str) -> list[Needed]:
        """Return what one arm needed to come to where another ended, of each column and seed."""
        found = []
        for cell in self.of(level_of):
            others = [one for one in self.of(by, cell.env) if one.seed == cell.seed and one.looks]
            if not cell.looks or not others:
                continue
            level = cell.looks[-1][1]
            real = others[0]
            reached = [place for place, look in enumerate(real.looks) if look[1] >= level]
            if reached:
                first = reached[0]
                found.append(Needed(cell, real.looks[first][0], real.seconds_at(first)))
            else:
                found.append(Needed(cell, None, None))
        return found

    def ratio(self, algo: str, env: str) -> tuple[float, float | None] | None:
        """Return how many online transitions real practice had for each of sim-to-real.

        The ratio of means over seeds, and the least over seeds that have both, if counts are known
        of each.
        """
        real = {cell.seed: cell for cell in self.of(f"{algo}-real", env)}
        s2r = {cell.seed: cell for cell in self.of(f"{algo}-s2r", env) if cell.online}
        both = [(real[seed], s2r[seed]) for seed in s2r if seed in real]
        if not both:
            return None
        mean = sum(one.online for one, _ in both) / sum(two.online for _, two in both)
        if any(cell.averaged for pair in both for cell in pair):
            return mean, None
        return mean, min(one.online / two.online for one, two in both)

    @property
    def predictors(self) -> list[Predictor]:
        """How well figures of audits order dreams by the rise in real success."""
        return rank_predictors(
            [
                Audited(cell.env, cell.seed, cell.audit, cell.rise)
                for cell in self.cells
                if cell.audit and cell.rise is not None
            ]
        )

    def rises(self, gate: str, env: str) -> tuple[Spread, int] | None:
        """Return the rise in success behind open gates, or shut ones, and in how many dreams.

        Dreams of one seed share start and tasks: their mean is one observation.
        """
        by_seed: dict[int, list[float]] = {}
        for cell in self.cells:
            if (cell.env, cell.gate) == (env, gate) and cell.rise is not None:
                by_seed.setdefault(cell.seed, []).append(cell.rise)
        if not by_seed:
            return None
        means = [sum(rises) / len(rises) for rises in by_seed.values()]
        return across_seeds(means), sum(map(len, by_seed.values()))

    def plain(self) -> dict[str, Any]:
        """Return it all for `result.json`."""
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "success": {
                arm: {env: _plain(self.success(arm, env)) for env in self.suite.envs}
                for arm in self.suite.arms
            },
            "comparisons": [
                {"arm": ours, "minus": theirs, "env": env, **_plain(self.paired(ours, theirs, env))}
                for ours, theirs in self.suite.compare
                for env in self.compared_in
                if self.paired(ours, theirs, env) is not None
            ],
            "real_for_each_s2r": [
                {"algo": algo, "env": env, "mean": found[0], "least": found[1]}
                for algo in ("grpo", "ppo")
                for env in self.suite.envs
                if (found := self.ratio(algo, env)) is not None
            ],
            "predictors": [one.plain() for one in self.predictors],
            "interval": "95 % t interval over seeds; of rank correlations, dreams drawn again",
        }


def _plain(found: Spread | Paired | None) -> dict[str, Any]:
    return {} if found is None else dict(found.plain())


def make_table(
    suite: Suite, root: Path, known: Mapping[str, CellResult] = MappingProxyType({})
) -> BenchTable:
    """Read what the stages left behind, but of cells that are known by their keys.

    Two cells of a suite may be the same but for what they are called.
    """
    spent = seconds_spent(root)
    cells = [
        replace(known[cell.key], env=cell.env, arm=cell.arm, seed=cell.seed)
        if cell.key in known else read_cell(cell, root, spent)
        for cell in suite.cells
    ]  # fmt: skip
    return BenchTable(suite, tuple(cells))


def seconds_spent(root: Path) -> dict[str, float]:
    """Return how long stages took, all attempts together, by their keys."""
    spent: dict[str, float] = {}
    for row in read_json_lines(root / TIMES):
        spent[row["key"]] = spent.get(row["key"], 0.0) + row["seconds"]
    return spent


def read_cell(cell: Cell, root: Path, spent: Mapping[str, float]) -> CellResult:
    """Return what one cell came to, or that it is not finished."""
    if not cell.finished(root):
        return CellResult(cell.env, cell.arm, cell.seed, None)
    found = _judged(cell, root, spent)
    start = _success(cell.start, root) if cell.start is not None else None
    if cell.audit is None:
        return replace(found, start=start)
    audit = read_run(cell.audit.folder(root))
    gate = "open" if audit.of("gate", "open") else "shut"
    if cell.gated and gate == "shut":
        found = replace(found, success=start, looks=())  # nobody would have trained
    return replace(found, start=start, audit=audit_figures(audit.result or {}), gate=gate)


def _success(stage: Stage, root: Path) -> float | None:
    found: float | None = read_run(stage.folder(root)).of("success", "mean")
    return found


def _judged(cell: Cell, root: Path, spent: Mapping[str, float]) -> CellResult:
    """Return what the evaluation found, and what led there."""
    chain = list(cell.last.chain())
    beside = [stage for stage in cell.stages if stage not in chain]
    every = {stage: read_run(stage.folder(root)) for stage in (*chain, *beside)}
    runs = [every[stage] for stage in chain]
    judged = runs[-1]

    def counts(name: str) -> list[int]:
        return [int(run.of("real_transitions", name) or 0) for run in runs if run.kind != "collect"]

    def took(stage: Stage, run: RunRecord) -> float:
        # What a killed suite left behind may have come to its end alone, by its own clock only;
        # that clock begins anew when a run is resumed, while its steps keep their times.
        steps = sum(sum(_timed(row)) for row in run.metrics)
        return max(spent.get(stage.key, 0.0), float(run.of("seconds") or 0.0), steps)

    looks: list[tuple[float, float, float]] = []
    taken = 0.0
    for run in runs:
        for row in run.metrics:
            taken += sum(_timed(row))
            if "real/success" in row:
                looks.append((row.get("real/steps_online", 0.0), row["real/success"], taken))
    # Audits that the table tells of stand beside the chain; what they look at is recorded for them.
    looked_at = sum(
        int(run.of("real_transitions", "offline") or 0)
        if stage.name.endswith(f"/{HELD}")
        else int(run.of("cost", "real_steps") or 0)
        for stage, run in every.items()
    )
    return CellResult(
        cell.env,
        cell.arm,
        cell.seed,
        success=judged.of("success", "mean"),
        episodes=int(judged.of("success", "episodes") or 0),
        offline=max(counts("offline"), default=0),
        online=sum(counts("online")),
        evaluation=sum(counts("evaluation")) + looked_at + int(judged.of("transitions") or 0),
        seconds=round(sum(took(stage, run) for stage, run in every.items()), 1),
        looks=tuple(looks),
        failed=int(judged.of("failed") or 0),
        packages=str(judged.about.get("packages", "")),
    )


def _timed(row: Mapping[str, float]) -> list[float]:
    """Return what the parts of a step took."""
    return [value for name, value in row.items() if name.startswith("time/")]
