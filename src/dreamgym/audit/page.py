"""The audit as one page to read: self-contained HTML, on a phone, on a screen or on paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dreamgym.audit.bound import Bound
from dreamgym.audit.closed_loop import ClosedLoop
from dreamgym.audit.interval import Figure
from dreamgym.audit.on_policy import OnPolicy
from dreamgym.audit.one_step import OneStep, StepFigures
from dreamgym.audit.outcome import OutcomeFigures
from dreamgym.audit.report import AuditReport, Disagreement
from dreamgym.audit.svg import bar, calibration_plot, drift_plot, policy_plot
from dreamgym.page import document, note, section, table

Cells = tuple[str, str, str]
"""Name, value and picture of a figure, as HTML."""


def audit_page(report: AuditReport, *, title: str, about: str) -> str:
    """Return the whole page."""
    parts = [
        f"<h1>{escape(title)}</h1><p class='about'>{escape(about)}</p>",
        _verdict(report),
        *(_on_policy(one, report) for one in report.on_policy),
        _closed_loop(report.closed_loop, report),
        _one_step(report.one_step, report),
        _calibration(report),
        _luck_and_judge(report),
        _bounds(report.bounds),
        _examples(report.disagreements),
        _cost(report),
    ]
    return document(title, parts)


def _row(name: str, figure: Figure, *, low: float = 0.0, limit: float | None = None) -> Cells:
    if not figure.known:
        return escape(name), "<span class='none'>not measured</span>", ""
    value = (
        f"<b>{figure.mean:.3f}</b> <span class='ci'>{figure.low:.3f} to {figure.high:.3f}, "
        f"of {figure.count}</span>"
    )
    return escape(name), value, bar(figure, low=low, limit=limit)


_HEAD = ("figure", "value, 95 % interval", "")


def _verdict(report: AuditReport) -> str:
    if not report.reasons:
        return "<p class='verdict open'>The gate is <b>open</b>: one may train in this dream.</p>"
    listed = "".join(f"<li>{escape(reason)}</li>" for reason in report.reasons)
    return f"<div class='verdict shut'>The gate is <b>shut</b>:<ul>{listed}</ul></div>"


def _outcomes(figures: OutcomeFigures, report: AuditReport, *, on_policy: bool) -> list[Cells]:
    wanted = report.thresholds
    return [
        _row(
            "dreamed successes that are real (precision)",
            figures.precision,
            limit=wanted.min_precision if on_policy else None,
        ),
        _row("real successes that the dream shows (recall)", figures.recall),
        _row(
            "episodes with the same outcome",
            figures.agreement,
            limit=None if on_policy else wanted.min_agreement,
        ),
        _row("success in the dream", figures.dream_success),
        _row("success for real", figures.real_success),
        _row("dream minus real", figures.gap, low=-1.0, limit=0.0),
    ]


def _by_kind(groups: Sequence[tuple[str, OutcomeFigures]]) -> str:
    if len(groups) < 2:
        return ""
    rows = [
        (
            escape(kind), _short(one.precision), _short(one.agreement),
            _short(one.dream_success), _short(one.real_success),
        )
        for kind, one in groups
    ]  # fmt: skip
    return "<h3>By kind of task</h3>" + table(
        ("kind", "precision", "same outcome", "dream", "real"), rows
    )


def _short(figure: Figure) -> str:
    if not figure.known:
        return "<span class='none'>none</span>"
    return f"{figure.mean:.2f} <span class='ci'>{figure.low:.2f} to {figure.high:.2f}</span>"


def _on_policy(one: OnPolicy, report: AuditReport) -> str:
    rows = _outcomes(one.figures, report, on_policy=True)
    rows += [
        _row("success where the policy plays for real by itself", one.own.real_success),
        _row("actions refused in the dream", one.refused_dream),
        _row("actions refused for real", one.refused_real),
        _row("worlds part, per step", one.drift.per_step),
    ]
    counts = (
        f"{one.episodes} episodes of the policy in the dream, their actions played again for real "
        f"({one.real_steps} real steps). {one.unknown} ended as unknown, {one.failed} broke; "
        "these are in no other figure."
    )
    return section(
        f"On-policy: {one.policy}",
        note(counts),
        table(_HEAD, rows),
        "<h3>How long its dreams stay true</h3>",
        drift_plot(one.drift.curve),
        _by_kind(one.by_kind),
    )


def _closed_loop(loop: ClosedLoop, report: AuditReport) -> str:
    counts = (
        f"{loop.episodes} real episodes told again in the dream. {loop.unknown} ended as unknown, "
        f"{loop.failed} broke; these are in no other figure."
    )
    policies = [
        (one.name, one.figures.dream_success, one.figures.real_success) for one in loop.policies
    ]
    named = [
        (escape(one.name), one.how, _short(one.figures.dream_success),
         _short(one.figures.real_success))
        for one in loop.policies
    ]  # fmt: skip
    verbs = [
        (escape(verb), str(parted), str(of))
        for verb, parted, of in loop.drift.by_verb[:10]
        if parted
    ]
    return section(
        "Closed loop",
        note(counts),
        table(
            _HEAD,
            [
                *_outcomes(loop.figures, report, on_policy=False),
                _row("worlds part, per step", loop.drift.per_step),
                _row("rank correlation of policies", loop.rank_correlation, low=-1.0),
            ],
        ),
        "<h3>How long the dream stays true</h3>",
        drift_plot(loop.drift.curve),
        table(("worlds part at", "times", "of"), verbs) if verbs else "",
        "<h3>Policies in both worlds</h3>",
        policy_plot(policies),
        table(("policy", "how", "dream", "real"), named),
        _by_kind(loop.by_kind),
    )


def _one_step(one: OneStep, report: AuditReport) -> str:
    figures, wanted = one.figures, report.thresholds
    counts = (
        f"{one.steps} steps of {one.episodes} held-out real episodes, each asked after its real "
        f"past. {one.unknown} were unknown to the dream, {one.failed} had no readable reply."
    )
    rows = [
        _row("dreamed successes that are real (precision)", figures.precision),
        _row("real successes that the dream shows (recall)", figures.recall),
        _row("false success", figures.false_success, limit=wanted.max_false_success),
        _row("false success on invalid actions", figures.false_success_invalid),
        _row("end of episode, F1", figures.done_f1),
        _row("invalid actions refused", figures.invalid_refused, limit=wanted.min_refused),
        _row("valid actions refused", figures.valid_refused),
        _row("next state right to the letter", figures.exact),
        _row("next state right, words said aside", figures.same_state),
        _row("words of the next state, F1", figures.token_f1),
        _row("likeness of next states (cosine)", figures.similarity),
    ]
    told = one.confusion
    confusion = table(
        ("", "success for real", "no success for real"),
        [
            ("success in the dream", str(told.both), f"<b>{told.only_told}</b>"),
            ("no success in the dream", str(told.only_real), str(told.neither)),
        ],
    )
    origins = [(escape(name), str(count), _short(right)) for name, count, right in one.by_origin]
    return section(
        "One step at a time",
        note(counts),
        table(_HEAD, rows),
        "<h3>Success, in steps</h3>",
        confusion,
        "<h3>Who decided</h3>",
        table(("who", "steps", "state and flags right"), origins),
        _steps_by_kind(one.by_kind),
    )


def _steps_by_kind(groups: Sequence[tuple[str, StepFigures]]) -> str:
    if len(groups) < 2:
        return ""
    rows = [
        (
            escape(kind), _short(one.same_state), _short(one.false_success),
            _short(one.invalid_refused), _short(one.valid_refused),
        )
        for kind, one in groups
    ]  # fmt: skip
    return "<h3>By kind of task</h3>" + table(
        ("kind", "state right", "false success", "invalid refused", "valid refused"), rows
    )


def _calibration(report: AuditReport) -> str:
    found = report.calibration
    if not found.bins:
        return ""
    error = "" if found.expected_error is None else f"{found.expected_error:.3f}"
    ranking = "nothing to rank" if found.ranking is None else f"{found.ranking:.3f}"
    return section(
        "Does the dream know when it is right?",
        note(
            f"{found.replies} replies with a confidence, {found.without} steps without one. "
            f"Expected calibration error {error}; chance that a right reply is surer than a "
            f"wrong one: {ranking}. Dots on the line would be honest confidence; their area is "
            "the share of replies."
        ),
        calibration_plot(found.bins),
    )


def _luck_and_judge(report: AuditReport) -> str:
    parts = []
    if report.luck is not None:
        luck = report.luck
        parts.append(
            section(
                "Luck",
                note(
                    f"{luck.episodes} episodes told {luck.repeats} times with the same actions, "
                    f"caches emptied before each; {luck.failed} broke."
                ),
                table(
                    _HEAD,
                    [
                        _row("spread of the reward", luck.reward_spread),
                        _row("episodes that end differently", luck.outcome_differs),
                        _row("episodes whose states differ", luck.states_differ),
                    ],
                ),
            )
        )
    if report.judged is not None:
        judged = report.judged
        rows = [(escape(name.replace("_", " ")), _short(figure)) for name, figure in judged.scores]
        words = (
            f"{judged.cases} steps, {judged.unread} verdicts could not be read and count nowhere. "
        )
        words += "Scores from 0 to 2; more is better on all four."
        parts.append(section("A judge's opinion", note(words), table(("criterion", "mean"), rows)))
    return "".join(parts)


def _bounds(bounds: Sequence[Bound]) -> str:
    known = [one for one in bounds if one.epsilon_r.known and one.epsilon_p.known]
    if not known:
        return ""
    rows = [
        (
            escape(one.visited), _short(one.epsilon_r), _short(one.epsilon_p),
            f"{one.model_error:.2f} of {one.largest_value:.0f}",
            f"{one.needed_gain:.2f}", "no" if one.says_nothing else "yes",
        )
        for one in known
    ]  # fmt: skip
    return section(
        "The paper's bounds",
        note(
            f"Lemma 1 and Theorem 1 with a discount of {known[0].gamma:g}. The error terms here "
            "are averages over visited states, not the suprema of the theory, so these numbers "
            "explain what matters; they guarantee nothing."
        ),
        table(
            ("visited", "reward error", "transition error", "Lemma 1", "gain needed",
             "rules anything out"),
            rows,
        ),
    )  # fmt: skip


def _examples(found: Sequence[Disagreement]) -> str:
    if not found:
        return ""
    return section("Where they disagree", *(_example(one) for one in found))


def _example(one: Disagreement) -> str:
    return (
        f"<article><p class='where'>{escape(one.where)} · {escape(one.task)} · step {one.step}</p>"
        f"<p><b>{escape(one.action)}</b> <span class='ci'>to reach: {escape(one.goal)}</span></p>"
        f"<div class='states'><div><h4>before</h4><pre>{escape(one.state)}</pre></div>"
        f"<div><h4>the dream: {escape(one.told_flags)}</h4><pre>{escape(one.told)}</pre></div>"
        f"<div><h4>reality: {escape(one.true_flags)}</h4><pre>{escape(one.true)}</pre></div></div>"
        f"<p class='why'>{escape(one.reasoning)}</p></article>"
    )


def _cost(report: AuditReport) -> str:
    origins = ", ".join(f"{name} {count}" for name, count in report.origins)
    doubts = ", ".join(f"{name} {count}" for name, count in report.doubts)
    why = f"Why steps ended as unknown: {doubts}. " if doubts else ""
    cost = report.cost
    return section(
        "Cost",
        note(
            f"{cost.real_steps} real steps, {cost.dream_steps} dreamed steps, "
            f"{cost.seconds:.0f} seconds. Who decided the dream's steps: {origins or 'nobody'}. "
            f"{why}The dream's memory holds other episodes of {report.familiar.mean:.0%} of the "
            "tasks."
        ),
    )
