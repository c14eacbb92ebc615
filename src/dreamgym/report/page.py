"""The report as a whole: from runs to one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType

from dreamgym.page import details, document, note, section, table, tiles
from dreamgym.report.examples import (
    LookUp,
    episodes_section,
    kept_files,
    no_references,
    tasks_section,
)
from dreamgym.report.fitting import audit_section, evaluation_section, supervised_section
from dreamgym.report.groups import ASIDE, RunGroup, group_runs
from dreamgym.report.learning import (
    COURSE,
    GAPS,
    TASKS,
    cost_section,
    course_section,
    looked,
    success_section,
)
from dreamgym.report.record import BY_TRIAL, RunRecord


def report_page(
    runs: Sequence[RunRecord],
    *,
    title: str = "",
    extra: Sequence[str] = (),
    names: Mapping[Path, str] = MappingProxyType({}),
    look_up: LookUp = no_references,
) -> str:
    """Return the whole page about some runs.

    Args:
        runs: of any kind; those that differ by their seeds are put together.
        title: plain words above it all.
        extra: sections of somebody else's, as HTML, shown first and in place of the headline.
        names: what runs are called, by their folders; those of one name are a group.
        look_up: finds the references that a dream was shown.
    """
    groups = group_runs(runs, names)
    trials = [group for group in groups if group.kind == BY_TRIAL]
    title = title or _title(runs)
    parts = [
        f"<h1>{escape(title)}</h1><p class='about'>{escape(_about(runs))}</p>",
        # Who judges policies says so first: looks on the way are of fewer tasks, and of others.
        *(extra or [_headline(trials)]),
        *_success(trials),
        cost_section(trials) if trials else "",
        course_section(
            "Dream against reality, while practising",
            "Dreams of the policy of that moment, told again for real with the same actions.",
            GAPS,
            trials,
        ),
        audit_section(groups),
        course_section("Curriculum", "What was practised, and what it was worth.", TASKS, trials),
        tasks_section(groups),
        evaluation_section(runs),
        course_section("How learning went", "One point per step.", COURSE, trials),
        *(supervised_section(kind, groups) for kind in ("dpo", "sft", "fit")),
        episodes_section([_readable(group) for group in groups], look_up=look_up),
        _settings(groups) if runs else "",
    ]
    return document(title, parts)


def _success(trials: Sequence[RunGroup]) -> list[str]:
    """Return curves by environment: those of several in one picture nobody could tell apart."""
    envs = dict.fromkeys(group.runs[0].env for group in trials)
    if len(envs) <= 1:
        return [success_section(trials)] if trials else []
    return [
        success_section(
            [group for group in trials if group.runs[0].env == env],
            f"Success over training in {env}",
        )
        for env in envs
    ]


def _readable(group: RunGroup) -> RunRecord:
    """Return the first run that kept episodes: of other seeds there is the same to read."""
    return next((run for run in group.runs if kept_files(run)), group.runs[0])


def _title(runs: Sequence[RunRecord]) -> str:
    names = [run.name for run in runs]
    return f"Report on {', '.join(names) if len(names) < 4 else f'{len(names)} runs'}"


def _about(runs: Sequence[RunRecord]) -> str:
    envs = sorted({run.env for run in runs if run.env})
    if not runs:
        return "from the record alone: the folders of its runs are not here"
    seeds = sorted({run.seed for run in runs})
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    words = f"{count} · seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    return " · ".join([words, *envs])


def _headline(trials: Sequence[RunGroup]) -> str:
    """Return what one looks for first: what each group reached, and at what cost."""
    shown = []
    for group in trials[:4]:
        before, after = group.spread(looked("before")), group.spread(looked("after"))
        online = group.spread(lambda run: run.of("real_transitions", "online"))
        if after is None or online is None:
            continue
        remark = f"real success, {online.mean:,.0f} real transitions practised on"
        start = f"{before.mean:.0%} → " if before else ""
        shown.append((group.label, f"{start}{after.mean:.0%}", remark, group.colour))
    return tiles(shown)


def _settings(groups: Sequence[RunGroup]) -> str:
    """Return how runs were made; of groups that are compared, the first of each."""
    firsts = [group.runs[0] for group in groups]
    names = sorted({name for run in firsts for name in run.settings})
    differing = [
        name
        for name in names
        if name not in ASIDE and len({str(run.settings.get(name)) for run in firsts}) > 1
    ]
    parts = []
    if differing and len(firsts) > 1:
        rows = [
            (escape(name), *(escape(str(run.settings.get(name, ""))) for run in firsts))
            for name in differing
        ]
        compared = table(("setting", *(group.label for group in groups)), rows)
        parts.append(details(f"{len(differing)} settings that differ", compared))
    for run in (run for group in groups for run in group.runs):
        made = {"run": str(run.path), **{name: str(value) for name, value in run.about.items()}}
        facts = table(("", ""), [(escape(name), escape(value)) for name, value in made.items()])
        lines = "\n".join(f"{name} = {value!r}" for name, value in sorted(run.settings.items()))
        inside = f"{facts}<pre>{escape(lines)}</pre>"
        parts.append(details(f"{run.name}: command, versions, all settings", inside))
    words = "Everything that a run depends on is in its folder; this page is made from there."
    return section("Settings and versions", note(words), *parts)
