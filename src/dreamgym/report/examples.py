"""The parts of a report to read: example tasks of a curriculum, and episodes turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from dreamgym import codec
from dreamgym.page import details, note, section, table
from dreamgym.report.groups import RunGroup
from dreamgym.report.record import RunRecord
from dreamgym.runs import read_json_lines
from dreamgym.types import Source, Step, Trajectory, Transition

LOOKED_AT = 400
"""Episodes of a file among which examples are chosen."""
LookUp = Callable[[RunRecord, Sequence[str]], Mapping[str, Transition]]
"""Finds the transitions that a dream was shown, by their ids."""


def no_references(run: RunRecord, wanted: Sequence[str]) -> Mapping[str, Transition]:
    """Find nothing."""
    return {}


def tasks_section(groups: Sequence[RunGroup]) -> str:
    """Return some of the tasks that curricula made or found worth most, of a run of each group."""
    parts: list[str] = []
    for group in groups:
        pools = (list(read_json_lines(run.path / "tasks.jsonl")) for run in group.runs)
        rows = next((pool for pool in pools if pool), [])
        if not rows:
            continue
        made = [row for row in rows if row.get("source") != Source.REAL.value]
        ranked = sorted(rows, key=lambda row: -(row.get("value") or 0.0))
        chosen = {row["id"]: row for row in [*made[:4], *ranked[:6]]}
        inside = table(
            ("task", "from", "value", "played", "won", "state"),
            [_task_row(row) for row in chosen.values()],
        )
        words = f"{group.label}: {len(rows)} tasks, {len(made)} of them synthetic"
        # The first is there to be read, all others to be unfolded.
        parts.append(details(words, inside) if parts else f"<h3>{escape(words)}</h3>{inside}")
    if not parts:
        return ""
    words = (
        "Four synthetic tasks and the six of highest value, as they stood at the end, each with "
        "its goal and its first state."
    )
    return section("Tasks of the curriculum", note(words), *parts)


def _task_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    value = row.get("value")
    first = _short(str(row.get("first_state", "")).replace("\n", " · "))
    parents = ", ".join(str(one).rpartition("#")[2] for one in row.get("parents", ()))
    return (
        escape(_short(str(row.get("goal") or row["id"])))
        + (f"<p class='why'>{escape(first)}</p>" if first else ""),
        escape(str(row.get("source", "")) + (f", like {parents}" if parents else "")),
        "" if value is None else f"{value:.3f}",
        str(row.get("visits", "")),
        str(row.get("wins", "")),
        escape(" ".join(str(row[name]) for name in ("state", "reason") if row.get(name))),
    )


def _short(words: str) -> str:
    return words if len(words) < 160 else words[:157] + "..."


def episodes_section(runs: Sequence[RunRecord], *, look_up: LookUp = no_references) -> str:
    """Return, of each run that kept episodes, one that was not won and one that was."""
    parts = []
    for run in runs:
        chosen = choose_examples(read_episodes(run))
        wanted = [name for one in chosen for step in one.steps for name in shown_of(step)]
        known = look_up(run, wanted) if wanted else {}
        parts += [_episode(run, one, known) for one in chosen]
    if not parts:
        return ""
    words = (
        "Of each run that kept episodes, in the dream and for real: the first that was not won and "
        "the last that was."
    )
    return section("Episodes to read", note(words), *parts)


def read_episodes(run: RunRecord) -> Iterator[Trajectory]:
    """Yield the episodes that a run kept, its rounds too, up to so many of each file."""
    for path in kept_files(run):
        yield from islice(codec.read_lines(path, Trajectory, growing=True), LOOKED_AT)


def kept_files(run: RunRecord) -> list[Path]:
    """Return the files of a run with episodes to read."""
    folders = ("episodes", "round-*/episodes")
    found = [path for name in folders for path in sorted(run.path.glob(f"{name}/*.jsonl"))]
    whole = run.path / "episodes.jsonl"
    return [whole, *found] if whole.is_file() else found


def choose_examples(episodes: Iterator[Trajectory]) -> list[Trajectory]:
    """Return the first episode that was not won and the last that was, of each world."""
    lost: dict[Source, Trajectory] = {}
    won: dict[Source, Trajectory] = {}
    for one in episodes:
        if one.error is None and one.steps:
            source = one.provenance.source
            if one.success:
                won[source] = one
            else:
                lost.setdefault(source, one)
    return [kept[source] for source in Source for kept in (lost, won) if source in kept]


def shown_of(step: Step) -> tuple[str, ...]:
    """Return the references of a step that there is room for."""
    return step.references[:2]


def _episode(run: RunRecord, one: Trajectory, known: Mapping[str, Transition]) -> str:
    outcome = "<b class='won'>won</b>" if one.success else "<b class='lost'>not won</b>"
    turns = "".join(_turn(number, step, known) for number, step in enumerate(one.steps, start=1))
    where = "in the dream" if one.provenance.source is Source.DREAM else "for real"
    return (
        f"<article><p class='where'>{escape(run.name)} · {escape(one.task.id)} · {where} · "
        f"{len(one.steps)} steps</p><p>{outcome} "
        f"<span class='ci'>to reach: {escape(one.task.goal)}</span></p>"
        + details("the first state", f"<pre>{escape(one.opening.text)}</pre>")
        + details(f"all {len(one.steps)} turns", turns)
        + "</article>"
    )


def _turn(number: int, step: Step, known: Mapping[str, Transition]) -> str:
    result = step.result
    flags = [
        name
        for name, true in (
            ("refused", result.refused), ("success", result.success),
            ("ended", result.terminated and not result.success),
        )
        if true
    ]  # fmt: skip
    chips = "".join(f"<span class='chip'>{flag}</span>" for flag in flags)
    why = f"<p class='why'>{escape(step.reasoning)}</p>" if step.reasoning else ""
    shown = [known[name] for name in shown_of(step) if name in known]
    seen = "".join(
        f"<p class='why'>after “{escape(one.action)}” it had seen:</p>"
        f"<pre>{escape(one.next_state)}</pre>"
        for one in shown
    )
    count = len(step.references)
    references = details(f"{count} references", seen) if seen else ""
    if count and not seen:
        references = f"<span class='chip'>{count} references</span>"
    return (
        f"<div class='turn'><span>{number}</span><div><b>{escape(step.action.text)}</b>{chips}{why}"
        f"<pre>{escape(result.observation.text)}</pre>{references}</div></div>"
    )
