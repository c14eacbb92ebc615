"""The tables of a suite for people, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dreamgym.bench.predict import FIGURES
from dreamgym.bench.table import BenchTable, CellResult
from dreamgym.eval.seeds import p_words


def write_markdown(table: BenchTable, *, command: str, failures: Mapping[str, str]) -> str:
    """Return the tables for people."""
    suite = table.suite
    lines = [
        f"# {suite.name}", "", suite.about, "", f"`{command}`", "", *made_with(table), "",
        f"Success on {_judged_on(table)} per seed, the same for every seed; mean over seeds with "
        "its 95 % t interval, which is over trainings and not over tasks. "
        "Real transitions: recorded before (offline), practised on (online); means over all cells "
        "of the arm. Minutes are of all stages, those shared with other arms too, one thread each.",
        "",
        *_success_table(table), "",
        *_notes(table),
        *_by_seed(table),
    ]  # fmt: skip
    compared = _comparisons(table)
    if compared:
        lines += [
            "Differences on the same seeds; p by a paired t test, and by an exact test that flips "
            "signs.", "", *compared, "",
        ]  # fmt: skip
    lines += [*_ratios(table), *_needed_table(table), *_audits(table), *_predictors(table)]
    missing = [cell for cell in table.cells if cell.success is None]
    if missing:
        names = [f"{cell.arm} in {cell.env}, seed {cell.seed}" for cell in missing[:20]]
        names += [f"and {len(missing) - 20} more"] if len(missing) > 20 else []
        lines += [f"Not finished, in no figure: {', '.join(names)}.", ""]
    lines += [f"- {name} failed: {why}" for name, why in failures.items()]
    return "\n".join(lines).rstrip() + "\n"


def made_with(table: BenchTable) -> list[str]:
    """Return what the cells were run with, the most common first, a line each."""
    found = Counter(cell.packages for cell in table.cells if cell.success is not None)
    if len(found) == 1 and "" not in found:
        return [f"Run with {next(iter(found))}."]
    return [
        f"- {_cells(count)} run with {packages or 'packages that the record does not name'}"
        for packages, count in found.most_common()
    ]


def _judged_on(table: BenchTable) -> str:
    counts = sorted({cell.episodes for cell in table.cells if cell.episodes})
    words = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(map(str, counts))
    return f"{words} held-out real tasks".lstrip()


def _notes(table: BenchTable) -> list[str]:
    """Return what is to be known of cells besides their figures, each note once."""
    found: dict[str, list[CellResult]] = {}
    for cell in table.cells:
        if cell.success is not None and cell.note:
            found.setdefault(cell.note, []).append(cell)
    lines = []
    for words, cells in found.items():
        arms = ", ".join(dict.fromkeys(cell.arm for cell in cells))
        envs = ", ".join(dict.fromkeys(cell.env for cell in cells))
        lines.append(f"- {_cells(len(cells))} ({arms} in {envs}): {words}.")
    broken = [cell for cell in table.cells if cell.failed]
    if broken:
        episodes = sum(cell.failed for cell in broken)
        lines.append(
            f"- {episodes} of the episodes that judge {_cells(len(broken))} broke and count "
            "neither way."
        )
    return [*lines, ""] if lines else []


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _success_table(table: BenchTable) -> list[str]:
    envs = table.suite.envs
    lines = [_row(["arm", *envs, "seeds", "offline", "online", "minutes"])]
    lines.append("|" + "---|" * (len(envs) + 5))
    for arm in table.suite.arms:
        done = table.of(arm)
        shown = [str(table.success(arm, env) or "none") for env in envs]
        seeds = [len(table.of(arm, env)) for env in envs]
        several = ", ".join(map(str, seeds if len(set(seeds)) > 1 else seeds[:1]))
        offline, online, minutes = (
            _mean([cell.offline for cell in done], "{:,.0f}"),
            _mean([cell.online for cell in done], "{:,.0f}"),
            _mean([cell.seconds / 60 for cell in done], "{:.1f}"),
        )
        lines.append(_row([arm, *shown, several, offline, online, minutes]))
    return lines


def _mean(values: Sequence[float], form: str) -> str:
    """Return a mean in words; nothing of nothing."""
    return form.format(sum(values) / len(values)) if values else ""


def _by_seed(table: BenchTable) -> list[str]:
    """Return what stands behind the means."""
    seeds = sorted({cell.seed for cell in table.cells})
    if len(seeds) == 1:
        return []
    lines = [
        _row(["arm", "in", *(f"seed {seed}" for seed in seeds)]),
        "|" + "---|" * (len(seeds) + 2),
    ]
    for arm in table.suite.arms:
        for env in table.suite.envs:
            found = {cell.seed: cell.success for cell in table.of(arm, env)}
            if found:
                lines.append(_row([arm, env, *(_short(found.get(seed)) for seed in seeds)]))
    return ["The same by seed.", "", *lines, ""]


def _comparisons(table: BenchTable) -> list[str]:
    head = [_row(["arm", "minus", "in", "difference", "pairs", "p (t)", "p (flip)"])]
    head.append("|" + "---|" * 7)
    lines: list[str] = []
    for ours, theirs in table.suite.compare:
        for env in table.compared_in:
            found = table.paired(ours, theirs, env)
            if found is not None:
                shown = [str(found.difference), str(found.difference.seeds)]
                tests = [p_words(found.p_t), p_words(found.p_flip)]
                lines.append(_row([ours, theirs, env or "all", *shown, *tests]))
    return [*head, *lines] if lines else []


def _needed_table(table: BenchTable) -> list[str]:
    """Return what real practice needed to come to where dreams ended, where looks tell."""
    rows = []
    for arm in table.suite.arms:
        algo, _, how = arm.partition("-")
        real = f"{algo}-real"
        if how not in ("dream", "s2r") or real not in table.suite.arms:
            continue
        for one in table.needed(arm, by=real):
            ended = one.ended
            shown = ["never" if one.online is None else f"{one.online:,.0f}"]
            shown += ["" if one.times is None else f"{one.times:.1f}"]
            shown += ["" if one.seconds is None else f"{one.seconds / 60:.1f}"]
            own = [f"{one.level:.2f}", f"{ended.online:,}", f"{ended.seconds / 60:.1f}"]
            rows.append(_row([arm, ended.env, str(ended.seed), *own, *shown]))
    if not rows:
        return []
    head = [
        "arm", "in", "seed", "its last look", "its online transitions", "its minutes",
        "real practice: online transitions", "times as many", "real practice: minutes",
    ]  # fmt: skip
    words = (
        "Looks at dev tasks while training: what real practice by the same algorithm needed to "
        "come to where an arm ended. Minutes are of everything: records, fits, audits and the "
        "evaluation are counted before practice."
    )
    return [words, "", _row(head), "|" + "---|" * len(head), *rows, ""]


def _ratios(table: BenchTable) -> list[str]:
    """Return how much more real practice was given than sim-to-real."""
    lines = []
    for algo in ("grpo", "ppo"):
        for env in table.suite.envs:
            found = table.ratio(algo, env)
            if found is not None:
                least = "not on record" if found[1] is None else f"{found[1]:.1f}"
                lines.append(_row([algo, env, f"{found[0]:.1f}", least]))
    if not lines:
        return []
    head = ["algorithm", "in", "mean", "least of all seeds"]
    words = "Online transitions of real practice for each one of sim-to-real (16 or more wanted):"
    return [words, "", _row(head), "|" + "---|" * 4, *lines, ""]


def _audits(table: BenchTable) -> list[str]:
    """Return each dream: what its audit found beside what came of it."""
    told = [cell for cell in table.cells if cell.audit and cell.success is not None]
    if not told:
        return []
    head = ["dream", "in", "seed", *FIGURES, "gate", "start", "success", "rise"]
    words = "Each dream: what its audit with the start found, and what learning in it led to."
    return [words, "", _row(head), "|" + "---|" * len(head), *map(_audited, told), ""]


def _audited(cell: CellResult) -> str:
    figures = [cell.audit.get(name) for name in FIGURES]
    ends = (cell.start, cell.success, cell.rise)
    return _row(
        [cell.arm, cell.env, str(cell.seed), *map(_short, figures), cell.gate, *map(_short, ends)]
    )


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _predictors(table: BenchTable) -> list[str]:
    """Return which figures of audits go with the rise in success."""
    found = table.predictors
    if not any(one.correlation is not None for one in found):
        return []
    lines = [
        "Spearman's rank correlation of each figure with the rise in real success, by ranks among "
        "the dreams of the same seed, with a 95 % interval from drawing dreams again. Empty: too "
        "few dreams, or all alike.",
        "", _row(["in", "figure", "correlation", "95 % interval", "dreams"]), "|" + "---|" * 5,
    ]  # fmt: skip
    for one in found:
        between = "" if one.low is None else f"{one.low:.2f} to {one.high:.2f}"
        mean = "" if one.correlation is None else f"{one.correlation:.2f}"
        lines.append(_row([one.env, one.figure, mean, between, str(one.dreams)]))
    lines.append("")
    for env in table.suite.envs:
        for gate in ("open", "shut"):
            rise = table.rises(gate, env)
            if rise is not None:
                spread, dreams = rise
                lines.append(f"- {env}, gate {gate}: {dreams} dreams, rise {spread}")
    return [*lines, ""]
