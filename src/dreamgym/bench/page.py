"""A suite as a page: bars of all arms first, then the report on the trainings behind them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from dreamgym.bench.looks import looks_section
from dreamgym.bench.suite import Suite
from dreamgym.bench.suites import learnt_in
from dreamgym.bench.table import BenchTable
from dreamgym.eval.seeds import Spread, p_words
from dreamgym.page import interval_bar, note, section, table
from dreamgym.report import read_run, report_page
from dreamgym.report.examples import LookUp, no_references
from dreamgym.report.record import BY_TRIAL


def suite_page(
    found: BenchTable, root: Path, *, made: Sequence[str] = (), look_up: LookUp = no_references
) -> str:
    """Return the whole page.

    Args:
        found: the figures.
        root: where the stages' folders are; of those that are there, curves and episodes are shown.
        made: plain words: the command, and what it ran with, a line each.
        look_up: finds the references that a dream was shown.
    """
    suite = found.suite
    runs = [read_run(stage.folder(root)) for stage in suite.stages if stage.finished(root)]
    trained = [run for run in runs if run.kind == BY_TRIAL]
    return report_page(
        trained,
        title=f"Bench {suite.name}",
        extra=(
            _arms(found), looks_section(found), _comparisons(found), _predictors(found),
            section("Made by", *map(note, made)) if made else "",
        ),
        names=_names(suite, root),
        look_up=look_up,
    )  # fmt: skip


def _names(suite: Suite, root: Path) -> dict[Path, str]:
    """Return what each training is called: the arms that it ends in, and where, if in several."""
    ends: dict[Path, dict[str, None]] = {}
    several = len({learnt_in(env)[0] for env in suite.envs}) > 1
    for cell in suite.cells:
        trained = [stage for stage in cell.stages if stage.words[0] == "train"]
        if trained:
            name = f"{cell.arm}, {learnt_in(cell.env)[0]}" if several else cell.arm
            ends.setdefault(trained[-1].folder(root), {})[name] = None
    return {folder: " and ".join(names) for folder, names in ends.items()}


def _arms(found: BenchTable) -> str:
    rows = []
    for env in found.suite.envs:
        for arm in found.suite.arms:
            spread = found.success(arm, env)
            if spread is not None:
                online = [cell.online for cell in found.of(arm, env)]
                rows.append(
                    (
                        escape(arm), escape(env), _value(spread), _bar(spread),
                        str(spread.seeds), f"{sum(online) / len(online):,.0f}",
                    )
                )  # fmt: skip
    head = ("arm", "in", "real success, 95 % interval", "", "seeds", "online real transitions")
    about = found.suite.about.replace("`", "")
    words = f"{about} On held-out real tasks; t intervals over seeds."
    return section("All arms", note(words), table(head, rows)) if rows else ""


def _comparisons(found: BenchTable) -> str:
    rows = []
    # Over all columns where they may be pooled, by column where not.
    shown = found.compared_in[-1:] if None in found.compared_in else found.compared_in
    for ours, theirs, env in ((*pair, env) for pair in found.suite.compare for env in shown):
        paired = found.paired(ours, theirs, env)
        if paired is not None:
            rows.append(
                (
                    escape(f"{ours} minus {theirs}"), escape(env or "all"),
                    _value(paired.difference),
                    _bar(paired.difference, scale=(-1.0, 1.0), limit=0.0),
                    str(paired.difference.seeds), escape(p_words(paired.p_t)),
                )
            )  # fmt: skip
    words = (
        "On the same environments and seeds. To the right of the dashed line, the first did better."
    )
    head = ("arms", "in", "difference, 95 % interval", "", "pairs", "p (paired t)")
    return section("Compared", note(words), table(head, rows)) if rows else ""


def _predictors(found: BenchTable) -> str:
    rows = []
    for one in found.predictors:
        if one.correlation is not None and one.low is not None and one.high is not None:
            spread = Spread(one.correlation, one.low, one.high, one.dreams)
            rows.append(
                (
                    escape(one.figure), escape(one.env), _value(spread),
                    _bar(spread, scale=(-1.0, 1.0), limit=0.0), str(one.dreams),
                )
            )  # fmt: skip
    words = (
        "Spearman's rank correlation of each figure of the audit with the rise in real success, "
        "by ranks among the dreams of the same seed; intervals from drawing dreams again."
    )
    head = ("figure of the audit", "in", "correlation, 95 % interval", "", "dreams")
    return section("Which audit figure predicts", note(words), table(head, rows)) if rows else ""


def _value(spread: Spread) -> str:
    if spread.low is None or spread.high is None:
        return f"<b>{spread.mean:.2f}</b>"
    return f"<b>{spread.mean:.2f}</b> <span class='ci'>{spread.low:.2f} to {spread.high:.2f}</span>"


def _bar(
    spread: Spread, *, scale: tuple[float, float] = (0.0, 1.0), limit: float | None = None
) -> str:
    low = spread.mean if spread.low is None else spread.low
    high = spread.mean if spread.high is None else spread.high
    return interval_bar(spread.mean, low, high, scale=scale, limit=limit, about=str(spread))
