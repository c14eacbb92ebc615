"""How an audit is shown on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from dreamgym.cli.display import facts, table

if TYPE_CHECKING:
    from pathlib import Path

    from dreamgym.audit import AuditReport
    from dreamgym.audit.one_step import StepFigures
    from dreamgym.audit.outcome import OutcomeFigures


def figures(console: Console, report: AuditReport) -> None:
    """Print what was measured."""
    one, loop = report.one_step, report.closed_loop
    counts = f"{one.steps} steps, {one.unknown} unknown, {one.failed} failed"
    rows = [(name.replace("_", " "), figure) for name, figure in _named(one.figures)]
    facts(console, f"One step after a real past ({counts})", rows)
    for policy in report.on_policy:
        counts = f"{policy.episodes} episodes, {policy.unknown} unknown, {policy.failed} failed"
        rows = [(name.replace("_", " "), figure) for name, figure in _named(policy.figures)]
        rows += [
            ("own real success", policy.own.real_success),
            ("refused in the dream", policy.refused_dream),
            ("refused for real", policy.refused_real),
            ("worlds part, per step", policy.drift.per_step),
        ]
        facts(console, f"{policy.policy} in the dream, told again for real ({counts})", rows)
        if policy.first_failure:
            console.print(f"The first failure: {policy.first_failure}", markup=False)
    counts = f"{loop.episodes} episodes, {loop.unknown} unknown, {loop.failed} failed"
    rows = [(name.replace("_", " "), figure) for name, figure in _named(loop.figures)]
    rows.append(("worlds part, per step", loop.drift.per_step))
    rows.append(("rank correlation of policies", loop.rank_correlation))
    if report.luck:
        rows.append(("luck: spread of rewards", report.luck.reward_spread))
    facts(console, f"Real episodes told again in the dream ({counts})", rows)
    table(
        console,
        "Policies in both worlds",
        ("policy", "how", "dream success", "real success"),
        [
            (one.name, one.how, one.figures.dream_success, one.figures.real_success)
            for one in loop.policies
        ],
    )
    if report.judged is not None:
        judged = report.judged
        rows = [(name.replace("_", " "), figure) for name, figure in judged.scores]
        counts = f"{judged.cases} steps, {judged.unread} verdicts could not be read"
        facts(console, f"A judge's opinion, 0 to 2 ({counts})", rows)


def _named(found: StepFigures | OutcomeFigures) -> list[tuple[str, object]]:
    return [(name, getattr(found, name)) for name in found.__dataclass_fields__]


def cost(console: Console, report: AuditReport, *, result: Path, page: Path) -> None:
    """Print what the audit took, and where it is."""
    doubts = ", ".join(f"{name} {count}" for name, count in report.doubts)
    facts(
        console,
        "Cost",
        [
            ("real steps", report.cost.real_steps),
            ("dream steps", report.cost.dream_steps),
            *([("unknown, and why", doubts)] if doubts else []),
            ("tasks that memory knows", f"{report.familiar.mean:.0%}"),
            ("seconds", f"{report.cost.seconds:.1f}"),
            ("result", result),
            ("page", page),
        ],
    )


def verdict(console: Console, report: AuditReport) -> None:
    """Print what the gate says."""
    if not report.reasons:
        console.print("The gate is open: one may train in this dream.", style="green")
        return
    console.print("The gate is shut:", style="red")
    for reason in report.reasons:
        console.print(f"- {reason}", markup=False, highlight=False, soft_wrap=True)
