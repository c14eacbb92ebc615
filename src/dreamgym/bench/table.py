"""From finished stages to tables: success over seeds, paired tests, real transitions, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym.bench.run import TIMES
from dreamgym.bench.suite import Cell, Suite
from dreamgym.eval.seeds import Paired, Spread, across_seeds, compare_paired
from dreamgym.report.record import read_run
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

    def needed(self, level_of: str, by: str) -> list[tuple[str, int, float, float | None]]:
        """Return what one arm needed to come to where another ended, by looks at reality.

        Of each environment and seed: the level, and the online transitions at the first look that
        reached it, or None where none did.
        """
        found = []
        for cell in self.of(level_of):
            others = [one for one in self.of(by, cell.env) if one.seed == cell.seed and one.looks]
            if not cell.looks or not others:
                continue
            level = cell.looks[-1][1]
            first = [online for online, success, _ in others[0].looks if success >= level]
            found.append((cell.env, cell.seed, level, first[0] if first else None))
        return found

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
                for env in (*self.suite.envs, None)
                if self.paired(ours, theirs, env) is not None
            ],
            "interval": "95 % t interval over seeds",
        }


def _plain(found: Spread | Paired | None) -> dict[str, Any]:
    return {} if found is None else dict(found.plain())


def make_table(suite: Suite, root: Path) -> BenchTable:
    """Read what the stages left behind."""
    spent: dict[str, float] = {}
    for row in read_json_lines(root / TIMES):
        spent[row["key"]] = spent.get(row["key"], 0.0) + row["seconds"]
    return BenchTable(suite, tuple(_read_cell(cell, root, spent) for cell in suite.cells))


def _read_cell(cell: Cell, root: Path, spent: Mapping[str, float]) -> CellResult:
    if not cell.last.finished(root):
        return CellResult(cell.env, cell.arm, cell.seed, None)
    chain = list(cell.last.chain())
    runs = [read_run(stage.folder(root)) for stage in chain]
    judged = runs[-1]

    def counts(name: str) -> list[int]:
        return [int(run.of("real_transitions", name) or 0) for run in runs if run.kind != "collect"]

    looks: list[tuple[float, float, float]] = []
    for run in runs:
        taken = 0.0
        for row in run.metrics:
            taken += sum(value for name, value in row.items() if name.startswith("time/"))
            if "real/success" in row:
                looks.append((row.get("real/steps_online", 0.0), row["real/success"], taken))
    audits = [int(run.of("cost", "real_steps") or 0) for run in runs]
    return CellResult(
        cell.env,
        cell.arm,
        cell.seed,
        success=judged.of("success", "mean"),
        episodes=int(judged.of("success", "episodes") or 0),
        offline=max(counts("offline"), default=0),
        online=sum(counts("online")),
        evaluation=sum(counts("evaluation")) + sum(audits) + int(judged.of("transitions") or 0),
        seconds=round(sum(spent.get(stage.key, 0.0) for stage in chain), 1),
        looks=tuple(looks),
    )


def write_markdown(
    table: BenchTable, *, command: str, versions: Mapping[str, str], failures: Mapping[str, str]
) -> str:
    """Return the tables for people."""
    suite = table.suite
    lines = [
        f"# {suite.name}", "", suite.about, "", f"`{command}`", "",
        ", ".join(f"{name} {version}" for name, version in versions.items()), "",
        "Success on held-out real tasks, mean over seeds with its 95 % t interval. Real "
        "transitions: recorded before (offline), practised on (online); means over all cells of "
        "the arm. Minutes are of all stages, those shared with other arms too, one thread each.",
        "",
        *_success_table(table), "",
    ]  # fmt: skip
    compared = _comparisons(table)
    if compared:
        lines += [
            "Differences on the same seeds; p by a paired t test, and by an exact test that flips "
            "signs.", "", *compared, "",
        ]  # fmt: skip
    lines += _needed_table(table)
    missing = [cell for cell in table.cells if cell.success is None]
    if missing:
        names = ", ".join(f"{cell.arm} in {cell.env}, seed {cell.seed}" for cell in missing[:20])
        lines += [f"Not finished, in no figure: {names}.", ""]
    lines += [f"- {name} failed: {why}" for name, why in failures.items()]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _success_table(table: BenchTable) -> list[str]:
    envs = table.suite.envs
    lines = [_row(["arm", *envs, "seeds", "offline", "online", "minutes"])]
    lines.append("|" + "---|" * (len(envs) + 5))
    for arm in table.suite.arms:
        done = table.of(arm)
        shown = [str(table.success(arm, env) or "none") for env in envs]
        means = [
            sum(values) / len(values) if values else 0.0
            for values in (
                [cell.offline for cell in done], [cell.online for cell in done],
                [cell.seconds / 60 for cell in done],
            )
        ]  # fmt: skip
        seeds = str(len({cell.seed for cell in done}))
        lines.append(
            _row([arm, *shown, seeds, f"{means[0]:,.0f}", f"{means[1]:,.0f}", f"{means[2]:.1f}"])
        )
    return lines


def _comparisons(table: BenchTable) -> list[str]:
    head = [_row(["arm", "minus", "in", "difference", "pairs", "p (t)", "p (flip)"])]
    head.append("|" + "---|" * 7)
    lines: list[str] = []
    envs: list[str | None] = list(table.suite.envs)
    for ours, theirs in table.suite.compare:
        for env in [*envs, None] if len(envs) > 1 else envs:
            found = table.paired(ours, theirs, env)
            if found is not None:
                p_t, p_flip = (
                    "" if p is None else f"{p:.3f}" for p in (found.p_t, found.p_flip)
                )  # fmt: skip
                shown = [str(found.difference), str(found.difference.seeds), p_t, p_flip]
                lines.append(_row([ours, theirs, env or "all", *shown]))
    return [*head, *lines] if lines else []


def _needed_table(table: BenchTable) -> list[str]:
    """Return what real practice needed to come to where dreams ended, where looks tell."""
    rows = []
    for arm in table.suite.arms:
        algo, _, how = arm.partition("-")
        real = f"{algo}-real"
        if how not in ("dream", "s2r") or real not in table.suite.arms:
            continue
        for env, seed, level, online in table.needed(arm, by=real):
            shown = "never" if online is None else f"{online:,.0f}"
            rows.append(_row([arm, env, str(seed), f"{level:.2f}", real, shown]))
    if not rows:
        return []
    head = ["arm", "in", "seed", "its last look", "reached by", "after online transitions"]
    words = (
        "Looks at dev tasks while training: when real practice first came to where an arm ended."
    )
    return [words, "", _row(head), "|" + "---|" * 6, *rows, ""]
