"""The parts of a report about fits, clones, preferences, audits and evaluations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dreamgym.page import Series, curve_plot, details, interval_bar, legend, note, section, table
from dreamgym.report.groups import RunGroup
from dreamgym.report.learning import counted, figure, figures, minutes
from dreamgym.report.record import RunRecord

CURVES = {
    "fit": (
        ("fit/held_out", "Held-out loss", "loss per token"),
        ("fit/held_out_state_exact", "Next states right to the letter", "share"),
        ("fit/held_out_flags_exact", "Flags right", "share"),
        ("fit/held_out_reasoning_exact", "Reasoning as annotated", "share"),
    ),
    "sft": (
        ("sft/held_out", "Held-out loss", "loss per token"),
        ("sft/held_out_exact", "Held-out episodes right to the letter", "share"),
        ("sft/loss", "Loss while learning", "loss per token"),
    ),
    "dpo": (
        ("dpo/held_out_accuracy", "Held-out pairs told apart", "share"),
        ("dpo/held_out_margin", "Held-out margin", "beta times logprob"),
        ("dpo/held_out_won_logprob", "Won episodes became likelier by", "logprob"),
        ("dpo/loss", "Loss while learning", "loss per pair"),
    ),
}
TITLES = {
    "fit": "Fitting the experience model",
    "sft": "Learning from demonstrations",
    "dpo": "Learning from won and lost episodes",
}


def supervised_section(kind: str, groups: Sequence[RunGroup]) -> str:
    """Return the curves of fits, clones or preferences."""
    ours = [group for group in groups if group.kind == kind]
    if not ours:
        return ""
    drawn = []
    for name, heading, unit in CURVES[kind]:
        share = unit == "share"
        curves = [Series(one.label, one.curve(name, share=share), one.colour) for one in ours]
        between = (0.0, 1.0) if share else None
        drawn.append(figure(heading, curve_plot(curves, across="update", up=unit, between=between)))
    rows = [
        (
            escape(group.label), str(len(group.runs)),
            counted(group, "real_transitions", "offline"), counted(group, "parameters"),
            minutes(group.spread(lambda run: run.of("seconds"))),
        )
        for group in ours
    ]  # fmt: skip
    keys = legend([Series(one.label, one.curve("step"), one.colour) for one in ours])
    head = ("what", "seeds", "real transitions learnt from", "parameters", "minutes")
    return section(TITLES[kind], table(head, rows), keys if len(ours) > 1 else "", figures(drawn))


def audits_of(runs: Iterable[RunRecord]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the audits among the runs and those that trainings named as their gate."""
    found: dict[Path, tuple[str, Mapping[str, Any]]] = {}
    for run in runs:
        if run.kind == "audit" and run.result is not None:
            found[run.path.resolve()] = (run.name, run.result)
        gate = str(run.settings.get("rl.gate", ""))
        if run.kind != "trial" or gate in ("", "off"):
            continue
        path = Path(gate)
        file = path / "result.json" if path.is_dir() else path
        if file.is_file() and path.resolve() not in found:
            name = path.name if path.is_dir() else path.parent.name
            found[path.resolve()] = (
                f"{path.absolute().parent.name}/{name}", json.loads(file.read_text("utf-8"))
            )  # fmt: skip
    return list(found.values())


def audit_section(groups: Sequence[RunGroup]) -> str:
    """Return what the audits said, gate figure by gate figure; of many, all but one folded."""
    audits = audits_of(run for group in groups for run in group.runs)
    ungated = [
        group.label for group in groups
        if group.in_dream and any(run.settings.get("rl.gate") == "off" for run in group.runs)
    ]  # fmt: skip
    if not audits and not ungated:
        return ""
    parts: list[str] = []
    for name, result in audits:
        gate = result["gate"]
        verdict = "open" if gate["open"] else "shut"
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in gate["reasons"])
        figures = table(("figure", "value, 95 % interval", ""), _audit_rows(result))
        parts.append(
            f"<div class='verdict {verdict}'><b>{escape(name)}</b>: the gate is <b>{verdict}</b>"
            f"{f'<ul>{reasons}</ul>' if reasons else ''}</div>"
            + (details(f"figures of {name}", figures) if parts else figures)
        )
    words = "Dream against reality on held-out tasks, before training. Dashed: what the gate asks."
    if ungated:
        words += f" Trained without a gate: {', '.join(ungated)}."
    return section("May one train in this dream?", note(words), *parts)


def _audit_rows(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    step, loop, wanted = result["one_step"], result["closed_loop"], result["gate"]["thresholds"]
    rows = []
    for policy in result["on_policy"]:
        rows += [
            _audit_row("dreamed successes of the policy that are real", policy["precision"],
                       limit=wanted["min_precision"]),
            _audit_row("dream minus real success", policy["gap"], scale=(-1.0, 1.0), limit=0.0),
        ]  # fmt: skip
    rows += [
        _audit_row("outcome of whole episodes agrees", loop["agreement"],
                   limit=wanted["min_agreement"]),
        _audit_row("invalid actions refused", step["invalid_refused"], limit=wanted["min_refused"]),
        _audit_row("false success, of all steps", step["false_success"],
                   limit=wanted["max_false_success"]),
        _audit_row("next state right to the letter", step["exact"]),
    ]  # fmt: skip
    return rows


def _audit_row(
    name: str,
    figure: Mapping[str, Any],
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    limit: float | None = None,
) -> tuple[str, str, str]:
    if figure["mean"] is None:
        return escape(name), "<span class='none'>not measured</span>", ""
    mean, low, high = figure["mean"], figure["low"], figure["high"]
    value = (
        f"<b>{mean:.3f}</b> <span class='ci'>{low:.3f} to {high:.3f}, of {figure['count']}</span>"
    )
    return escape(name), value, interval_bar(mean, low, high, scale=scale, limit=limit, about=name)


def evaluation_section(runs: Sequence[RunRecord]) -> str:
    """Return evaluations on held-out tasks, one row each."""
    ours = [run for run in runs if run.kind == "eval" and run.of("success", "mean") is not None]
    if not ours:
        return ""
    rows = []
    for run in ours:
        found = run.of("success")
        mean, low, high = found["mean"], found["low"], found["high"]
        value = (
            f"<b>{mean:.2f}</b> <span class='ci'>{low:.2f} to {high:.2f}, "
            f"of {found['episodes']}</span>"
        )
        rows.append(
            (
                f"{escape(run.name)}<br><span class='ci'>{escape(str(run.of('policy')))}</span>",
                escape(f"{run.env.partition('?')[0]}, {run.of('split')}"),
                value, interval_bar(mean, low, high, about=f"success {mean:.2f}"),
                f"{run.of('transitions'):,}",
            )
        )  # fmt: skip
    head = ("evaluation", "tasks", "success, 95 % interval", "", "real transitions")
    words = "Played for real on tasks that nobody practised; intervals are over episodes (Wilson)."
    return section("Judged for real", note(words), table(head, rows))
