"""What the demo came to, read from the run directories of its stages, and the page about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dreamgym import __version__, codec
from dreamgym.config import RunConfig, dump_toml
from dreamgym.page import interval_bar, note, section, table
from dreamgym.report import RunRecord, read_run, report_page
from dreamgym.report.examples import LookUp, no_references
from dreamgym.runs import read_json_lines
from dreamgym.runs.versions import installed_versions
from dreamgym.types import Trajectory, digest

if TYPE_CHECKING:
    from dreamgym.jobs.stages import Stage  # torch: whoever only reads does without

JUDGED = {
    "warm_start": "start-judged",
    "dream": "dreamt-judged",
    "sim_to_real": "real-judged",
}
"""What is compared, and the stage that judged it."""
CALLED = {
    "warm_start": "warm start",
    "dream": "after the dream",
    "sim_to_real": "after sim-to-real",
}
OFFLINE = ("recorded", "walks", "explored", "own")
"""Stages whose real transitions the dream is made of."""
GOOD_LENGTH = 6
"""Turns of an example that is good to read."""
ON_PAGE = ("dreamt", "real", "dream", "start", "audit", *JUDGED.values())


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One step of learning."""

    step: int
    """From the first in the dream on, also where practice went on for real."""
    practised: float | None
    """Success where it practised."""
    real: float | None
    """Success for real, where there was a look."""
    for_real: bool
    """Whether the step was made for real."""


@dataclass(frozen=True, slots=True)
class Example:
    """One task, played for real before and after the dream."""

    before: Trajectory
    after: Trajectory


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """All that the demo has to show."""

    result: Mapping[str, Any]
    """What `result.json` holds."""
    reasons: tuple[str, ...]
    """Why nothing was trained; empty where the gate is open."""
    curve: tuple[CurvePoint, ...]
    example: Example | None


def read_outcome(
    config: RunConfig, root: Path, stages: Sequence[Stage], *, reasons: tuple[str, ...]
) -> DemoOutcome:
    """Read what the finished stages left behind."""
    runs = {
        stage.name: read_run(root / stage.name)
        for stage in stages
        if (root / stage.name / "result.json").is_file()
    }
    times = [one for one in read_json_lines(root / "events.jsonl") if one["event"] == "stage"]
    result = {
        "command": "demo",
        "env": stages[0].config.env.spec,
        "split": config.eval.split,
        "seed": config.seed,
        "config_digest": digest(dump_toml(config)),
        "version": __version__,
        "versions": installed_versions(),
        "gate": {"open": not reasons, "reasons": list(reasons)},
        "real_success": {
            name: runs[stage].of("success") if stage in runs else None
            for name, stage in JUDGED.items()
        },
        "real_transitions": count_transitions(runs),
        "dream_transitions": sum(
            runs[name].of("dream_transitions") or 0 for name in ("dreamt", "real") if name in runs
        ),
        "seconds": _summed(times, "seconds"),
        "processor_seconds": _summed(times, "processor_seconds"),
    }
    return _with_pictures(result, root, reasons=reasons)


def outcome_of(run: RunRecord) -> DemoOutcome:
    """Return what a finished demo came to, from what it left."""
    reasons = tuple(run.of("gate", "reasons") or ())
    return _with_pictures(run.result or {}, run.path, reasons=reasons)


def _with_pictures(
    result: Mapping[str, Any], root: Path, *, reasons: tuple[str, ...]
) -> DemoOutcome:
    trained = [root / name for name in ("dreamt", "real")]
    curve = read_curve([read_run(one) for one in trained if (one / "result.json").is_file()])
    judged = [root / JUDGED[name] / "episodes.jsonl" for name in ("warm_start", "dream")]
    example = find_example(*judged) if not reasons else None
    return DemoOutcome(result, reasons, curve, example)


def _summed(times: Sequence[Mapping[str, Any]], what: str) -> dict[str, float]:
    """Return how long each stage took; an attempt that was cut off is not in it."""
    found = {one["stage"]: float(one[what]) for one in times}
    return {**found, "total": round(sum(found.values()), 1)}


def count_transitions(runs: Mapping[str, RunRecord]) -> dict[str, int]:
    """Count real transitions by what they were for; none is counted twice."""

    def counted(name: str, *path: str) -> int:
        return int((runs[name].of(*path) if name in runs else None) or 0)

    return {
        "offline": sum(counted(name, "real_transitions", "offline") for name in OFFLINE),
        "online_dream": counted("dreamt", "real_transitions", "online"),
        "online_sim_to_real": counted("real", "real_transitions", "online"),
        "audit": counted("held", "real_transitions", "offline")
        + counted("audit", "cost", "real_steps"),
        "evaluation": sum(counted(name, "transitions") for name in JUDGED.values())
        + sum(counted(name, "real_transitions", "evaluation") for name in ("dreamt", "real")),
    }


def read_curve(runs: Sequence[RunRecord]) -> tuple[CurvePoint, ...]:
    """Return the steps of one training after the other as one curve."""
    found: list[CurvePoint] = []
    for run in runs:
        before = found[-1].step if found else 0
        online = 0.0
        for row in run.metrics:
            now = row.get("real/steps_online", 0.0)
            if row["step"] or not found:
                found.append(
                    CurvePoint(
                        before + int(row["step"]), row.get("reward/success"),
                        row.get("real/success"), for_real=now > online,
                    )
                )  # fmt: skip
            online = now
    return tuple(found)


def find_example(before: Path, after: Path) -> Example | None:
    """Return one task in two evaluations: not won, then won, where there is such a one."""
    first = {one.task.id: one for one in codec.read_lines(before, Trajectory) if not one.error}
    pairs = [
        Example(first[one.task.id], one)
        for one in codec.read_lines(after, Trajectory)
        if not one.error and one.task.id in first
    ]
    return min(pairs, key=_telling, default=None)


def _telling(pair: Example) -> tuple[bool, bool, int, str]:
    """Order pairs: learnt ones first, of them those that are neither trivial nor long to read."""
    learnt = pair.after.success and not pair.before.success
    length = abs(len(pair.after.steps) - GOOD_LENGTH)
    return (not learnt, not pair.after.success, length, pair.after.task.id)


def short_script(one: Trajectory) -> list[tuple[str, str]]:
    """Return what was done and the page that followed, in a line each; the opening comes first."""
    pages = [("", one.opening.text)]
    for step in one.steps:
        refused = " (refused)" if step.result.refused else ""
        pages.append((step.action.text + refused, step.result.observation.text))
    return [(action, " | ".join(text.splitlines())) for action, text in pages]


def demo_page(
    outcome: DemoOutcome, root: Path, *, title: str = "", look_up: LookUp = no_references
) -> str:
    """Return the whole page."""
    there = [name for name in ON_PAGE if (root / name / "result.json").is_file()]
    return report_page(
        [read_run(root / name) for name in there],
        title=title or f"DreamGym demo: {outcome.result['env']}",
        extra=[_summary(outcome), _example(outcome.example)],
        look_up=look_up,
    )


def _summary(outcome: DemoOutcome) -> str:
    result = outcome.result
    used, seconds = result["real_transitions"], result["seconds"]["total"]
    rows = []
    for name, found in result["real_success"].items():
        if found is None or found["mean"] is None:
            rows.append((CALLED[name], "<span class='none'>not played</span>", "", ""))
            continue
        mean, low, high = found["mean"], found["low"], found["high"]
        online = used["online_sim_to_real"] if name == "sim_to_real" else used["online_dream"]
        rows.append(
            (
                CALLED[name],
                f"<b>{mean:.2f}</b> <span class='ci'>{low:.2f} to {high:.2f}, "
                f"of {found['episodes']}</span>",
                interval_bar(mean, low, high, about=f"{CALLED[name]}: {mean:.2f}"),
                f"{online:,}",
            )
        )
    words = (
        f"Real success on {result['split']} tasks that nobody practised. Recorded before: "
        f"{used['offline']:,} real transitions. The audit took {used['audit']:,}, looks and "
        f"evaluations {used['evaluation']:,}. All stages together: {seconds / 60:.1f} minutes. "
        "Sim-to-real goes on from the policy that the dream left, so its curves begin there. "
        "The curves are from shorter looks on the way, at dev tasks."
    )
    stopped = "".join(f"<li>{escape(reason)}</li>" for reason in outcome.reasons)
    shut = f"<div class='verdict shut'>Nothing was trained: <ul>{stopped}</ul></div>"
    head = ("policy", "real success, 95 % interval", "", "real transitions practised on")
    return section("What came of it", note(words), shut if stopped else "", table(head, rows))


def _example(example: Example | None) -> str:
    if example is None:
        return ""
    parts = []
    for when, one in (("Before", example.before), ("After the dream", example.after)):
        outcome = "<b class='won'>won</b>" if one.success else "<b class='lost'>not won</b>"
        rows = [(escape(action), escape(page)) for action, page in short_script(one)]
        parts.append(f"<h3>{when}: {outcome}, {len(one.steps)} turns</h3>")
        parts.append(table(("it did", "and saw"), rows))
    task = example.after.task
    words = f"Task: {task.goal}. A task that was learnt was picked, if there is one."
    return section(f"One {task.split} task, before and after", note(words), *parts)
