"""The part of a report about learning by trial: success, what it cost, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from dreamgym.eval.seeds import Spread
from dreamgym.page import Series, curve_plot, legend, note, section, table
from dreamgym.report.groups import RunGroup
from dreamgym.report.record import RunRecord

Reading = Callable[[RunRecord], float | None]

SHARES = frozenset(
    {
        "groups/no_variance", "episodes/refused", "gap/outcome_agreement", "gap/precision",
        "gap/watch_unknown", "gap/dream_success", "gap/real_success", "tasks/synthetic_share",
        "tasks/success_synthetic", "actor/clip_frac",
    }
)  # fmt: skip
"""Metrics that lie between 0 and 1 and are drawn so."""
COURSE = (
    ("groups/no_variance", "Groups that teach nothing", "share of groups"),
    ("episodes/refused", "Refused actions", "share of actions"),
    ("episodes/length", "Length of episodes", "turns"),
    ("episodes/unknown", "Dreams given up as unknown", "episodes per step"),
    ("actor/entropy", "How undecided the policy is", "entropy per token"),
    ("actor/kl", "How far from where it started", "KL per token"),
    ("critic/explained_variance", "What the critic explains", "share of variance"),
)
"""How learning went: metric, title and unit."""
GAPS = (
    ("gap/precision", "Dreamed successes that are real", "precision"),
    ("gap/dream_minus_real", "Dream minus reality", "success"),
    ("gap/outcome_agreement", "Episodes with the same outcome", "share"),
    ("gap/refused", "Refused: dream minus reality", "share of actions"),
)
TASKS = (
    ("tasks/value", "Value of practised tasks", "value"),
    ("tasks/synthetic_share", "Synthetic among practised tasks", "share"),
    ("tasks/success_synthetic", "Success on synthetic tasks", "share"),
    ("tasks/synthetic", "Synthetic tasks in the pool", "tasks"),
    ("tasks/pool", "Tasks in the pool", "tasks"),
)


def figure(title: str, drawn: str) -> str:
    """Return a picture under its title; nothing where there is no picture."""
    return f"<figure><h3>{escape(title)}</h3>{drawn}</figure>" if drawn else ""


def figures(drawn: Sequence[str]) -> str:
    """Return pictures side by side."""
    shown = "".join(drawn)
    return f"<div class='plots'>{shown}</div>" if shown else ""


def success_section(groups: Sequence[RunGroup], title: str = "Success over training") -> str:
    """Return real success over training, and success where it practised beside it."""
    real = _series(groups, "real/success")
    greedy = _series(groups, "real/success_greedy")
    dreamt = [group for group in groups if group.in_dream]
    beside = [
        one
        for group in dreamt
        for one in (
            Series(f"{group.label}: real", group.curve("real/success", share=True), group.colour),
            Series(
                f"{group.label}: where it practised",
                group.curve("reward/success", share=True),
                group.colour,
                dashed=True,
            ),
        )
    ]
    bought = [
        Series(group.label, group.curve("real/success", across="real/steps_online", share=True),
               group.colour)
        for group in groups
        if any(row.get("real/steps_online") for run in group.runs for row in run.metrics)
    ]  # fmt: skip
    drawn = [
        figure("Real success", _shares(real)),
        figure("Real success, doing the likeliest thing", _shares(greedy)),
        figure("Success while practising", _shares(_series(groups, "reward/success"))),
        figure("Dream (dashed) and reality (solid)", _shares(beside)),
        figure("Real success by real transitions practised on",
               _shares(bought, across="real transitions")),
    ]  # fmt: skip
    return section(
        title,
        note(
            "Bands are 95 %: over seeds (t interval) where there are several, otherwise over the "
            "episodes of a look (Wilson); of more than four groups none are drawn. Looks at "
            "reality play dev tasks that nobody practises."
        ),
        legend(real or _series(groups, "reward/success")),
        figures(drawn),
    )


def _series(groups: Sequence[RunGroup], name: str) -> list[Series]:
    found = [Series(one.label, one.curve(name, share=True), one.colour) for one in groups]
    return [one for one in found if one.points]


def _shares(curves: Sequence[Series], across: str = "step") -> str:
    return curve_plot(curves, across=across, up="success", between=(0.0, 1.0))


def course_section(
    title: str, words: str, wanted: Sequence[tuple[str, str, str]], groups: Sequence[RunGroup]
) -> str:
    """Return several metrics over training; what nobody wrote or never moves is out."""
    drawn = []
    names = {name for name, _, _ in wanted}
    groups = [
        one for one in groups if any(names & row.keys() for run in one.runs for row in run.metrics)
    ]
    for name, heading, unit in wanted:
        share = name in SHARES
        curves = [Series(one.label, one.curve(name, share=share), one.colour) for one in groups]
        if len({point.mean for curve in curves for point in curve.points}) < 2:
            continue
        between = (0.0, 1.0) if share else None
        drawn.append(figure(heading, curve_plot(curves, across="step", up=unit, between=between)))
    if not any(drawn):
        return ""
    shown = legend([Series(one.label, one.curve("step"), one.colour) for one in groups])
    return section(title, note(words), shown if len(groups) > 1 else "", figures(drawn))


def cost_section(groups: Sequence[RunGroup]) -> str:
    """Return what each group reached and what it took, as a table."""
    rows = [
        (
            f"<span class='key'><i class='c{group.colour % 8}'></i>{escape(group.label)}</span>",
            str(len(group.runs)),
            shown(_success(group, "before")),
            shown(_success(group, "after")),
            *(counted(group, "real_transitions", name)
              for name in ("offline", "online", "evaluation")),
            counted(group, "dream_transitions"),
            minutes(group.spread(lambda run: run.of("seconds"))),
        )
        for group in groups
    ]  # fmt: skip
    head = (
        "policy", "seeds", "real success before", "after", "real transitions recorded before",
        "practised on", "to look", "dreamt transitions", "minutes",
    )  # fmt: skip
    unfinished = [run.name for group in groups for run in group.runs if run.result is None]
    words = "Real transitions are counted in three places that are never added up. "
    words += "Success is of dev tasks, sampled as the policy practises; means over seeds."
    if unfinished:
        words += f" Not finished, so with no figures here: {', '.join(unfinished)}."
    return section("What it reached and what it took", note(words), table(head, rows))


def looked(when: str) -> Reading:
    """Return what reads real success from a look at reality: `before` or `after`."""

    def read(run: RunRecord) -> float | None:
        found = run.of(when, "real/success")
        if found is not None:
            return float(found)
        seen = [row["real/success"] for row in run.metrics if "real/success" in row]
        if not seen or run.result is not None:
            return None
        return seen[0] if when == "before" else None

    return read


def _success(group: RunGroup, when: str) -> Spread | None:
    """Return real success of a look, its interval cut off where no share can be."""
    spread = group.spread(looked(when))
    return None if spread is None else spread.within(0.0, 1.0)


def shown(spread: Spread | None, digits: int = 2) -> str:
    """Return a mean with its interval as HTML."""
    if spread is None:
        return "<span class='none'>none</span>"
    mean = f"<b>{spread.mean:.{digits}f}</b>"
    if spread.low is None or spread.high is None:
        return mean
    return f"{mean} <span class='ci'>{spread.low:.{digits}f} to {spread.high:.{digits}f}</span>"


def counted(group: RunGroup, *path: str) -> str:
    """Return a count, mean over seeds, as HTML."""
    spread = group.spread(lambda run: run.of(*path))
    return "<span class='none'>none</span>" if spread is None else f"{spread.mean:,.0f}"


def minutes(spread: Spread | None) -> str:
    """Return seconds as minutes, as HTML."""
    return "<span class='none'>none</span>" if spread is None else f"{spread.mean / 60:,.1f}"
