"""The train job in rounds: between two, the dream learns from what was made for real meanwhile.

A round is an ordinary training. What it practised on for real, and dreams of its policy that the
watch told again, join a copy of the dream's store; the dream is fitted on, audited where a gate is
asked for, and the policy goes on in it. The store that the first dream remembers with is not
touched, and the copy only between rounds, so each stage goes on exactly as any run does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym import __version__, build
from dreamgym.agents.policy_card import POLICY
from dreamgym.config import RunConfig
from dreamgym.jobs.practice import keep_episodes
from dreamgym.jobs.rounds_plan import (
    Ended,
    RoundsPlan,
    dream_of,
    gate_reasons,
    is_finished,
    next_stage,
    read_plan,
    read_result,
)
from dreamgym.jobs.stages import STORE, OnTick, finish_stage
from dreamgym.replay import copy_store
from dreamgym.runs import RunDir, read_json_lines
from dreamgym.types import Source

_ADDED_UP = ("real/steps_online", "real/steps_probes", "real/steps_watch")
"""Figures that count from the beginning of a round, and are shown from that of the training."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a training in rounds left behind."""

    folder: Path
    """Of the policy."""
    result: Mapping[str, Any]
    """What `result.json` holds."""
    reasons: tuple[str, ...]
    """Why nobody trained in the last dream; empty where no gate was shut."""


def run_rounds(config: RunConfig, run: RunDir, *, on_tick: OnTick = lambda tick: None) -> Rounds:
    """Train round by round; do what is missing, and leave policy, figures and result."""
    root = run.path.absolute()
    plan = read_plan(config)
    if not (root / STORE).exists():
        copy_store(plan.remembered, root / STORE)
    while (stage := next_stage(plan, root)) is not None:
        if stage.job == "fit":
            _gather(plan, root)
        finish_stage(stage, root / stage.name, run, on_tick=on_tick)
    past = _ended(plan, root)
    reasons = gate_reasons(plan, root, len(past) + 1) if _mended(root, past[-1]) else ()
    folder = _take_policy(root / f"round-{past[-1].number}" / POLICY, root / POLICY)
    _write_curve(run, past)
    result = result_of(plan, root, past)
    run.result(result)
    run.event("finished", rounds=len(past), gate_open=not reasons)
    return Rounds(folder, result, reasons)


def _ended(plan: RoundsPlan, root: Path) -> tuple[Ended, ...]:
    numbers = range(1, plan.config.rl.rounds + 1)
    folders = {number: root / f"round-{number}" for number in numbers}
    return tuple(Ended(n, read_result(path)) for n, path in folders.items() if is_finished(path))


def _mended(root: Path, round_: Ended) -> bool:
    return is_finished(root / f"dream-{round_.number + 1}")


def _gather(plan: RoundsPlan, root: Path) -> None:
    """Let what was made for real in the rounds so far join the copy; what is there stays so."""
    with build.make_store(root / STORE, plan.fit.replay) as all_:
        for one in _ended(plan, root):
            with build.make_store(root / f"round-{one.number}" / STORE, plan.config.replay) as own:
                keep_episodes(all_, own.trajectories(source=Source.REAL))


def _take_policy(policy: Path, place: Path) -> Path:
    """Copy the last policy to where the policy of any training lies."""
    half = place.with_name(f".{place.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(policy, half)
    shutil.rmtree(place, ignore_errors=True)
    os.replace(half, place)
    return place


def _write_curve(run: RunDir, past: Sequence[Ended]) -> None:
    """Write the figures of all rounds one after the other, steps and counts going on."""
    steps, counts = 0, dict.fromkeys(_ADDED_UP, 0.0)
    for one in past:
        seen = {row["step"]: row for row in read_json_lines(run.path / f"round-{one.number}"
                                                            / "metrics.jsonl")}  # fmt: skip
        last: Mapping[str, float] = {}
        for step in sorted(seen):
            row = {name: value for name, value in seen[step].items() if name != "step"}
            row |= {name: row[name] + counts[name] for name in _ADDED_UP if name in row}
            last = {**last, **row}
            if step or one.number == 1:  # The look before a later round is at the same policy.
                run.metrics(steps + int(step), row)
        steps += int(one.result["steps"])
        counts = {name: last.get(name, counts[name]) for name in _ADDED_UP}


def result_of(plan: RoundsPlan, root: Path, past: Sequence[Ended]) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    config, first, last = plan.config, past[0].result, past[-1].result
    followed = [_followed(plan, root, one) for one in past]
    audited = sum(one["real_transitions"] for one in followed if one)

    def total(*path: str) -> int:
        return sum(int(_inside(one.result, path)) for one in past)

    return {
        "command": "train",
        "algo": config.train.algo,
        "env": first["env"],
        "world": config.rl.world,
        "gate": config.rl.gate,
        "seed": config.seed,
        "version": __version__,
        "start": config.policy.model,
        "policy": str(root / POLICY),
        "steps": total("steps"),
        "before": first["before"],
        "after": last["after"],
        "rounds": [_told(plan, root, one, then) for one, then in zip(past, followed, strict=True)],
        "real_transitions": {
            "offline": first["real_transitions"]["offline"],
            "online": total("real_transitions", "online"),
            "evaluation": total("real_transitions", "evaluation") + audited,
            "evaluation_watch": total("real_transitions", "evaluation_watch"),
            "evaluation_audit": audited,
            "learnt_watch": sum(
                int(one.result["real_transitions"]["evaluation_watch"])
                for one, then in zip(past, followed, strict=True)
                if then
            ),
            "online_ceiling": config.rl.then_real or None,
        },
        "dream_transitions": total("dream_transitions"),
        "settings": asdict(config.rl),
        "seconds": _seconds(root),
    }


def _inside(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = values
    for part in path:
        found = found[part]
    return found


def _told(
    plan: RoundsPlan, root: Path, one: Ended, then: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return how a round went."""
    found = one.result
    made = f"all {one.dream_steps} steps in the dream are made"
    counts = ("online", "evaluation", "evaluation_watch")
    return {
        "round": one.number,
        "run": str(root / f"round-{one.number}"),
        "world": str(dream_of(plan, root, one.number)),
        "steps": found["steps"],
        "dream_steps": one.dream_steps,
        "why": one.turn["why"] if one.turn else made,
        "real_transitions": {name: found["real_transitions"][name] for name in counts},
        "before": found["before"],
        "after": found["after"],
        "watch": found["watch"],
        "then": then,
    }


def _followed(plan: RoundsPlan, root: Path, one: Ended) -> dict[str, Any] | None:
    """Return what became of the dream after a round; None where it was left as it is."""
    if not _mended(root, one):
        return None
    number = one.number + 1
    audit = root / f"audit-{number}" if plan.audit is not None else None
    return {
        "what": "refresh" if one.online else "repair",
        "dream": str(dream_of(plan, root, number)),
        "learnt_from": read_result(root / f"dream-{number}")["real_transitions"]["offline"],
        "audit": str(audit) if audit else None,
        "shut": list(gate_reasons(plan, root, number)),
        "real_transitions": read_result(audit)["cost"]["real_steps"] if audit else 0,
    }


def _seconds(root: Path) -> float:
    """Return how long the stages took; an attempt that was cut off is not in it."""
    events = read_json_lines(root / "events.jsonl")
    times = {one["stage"]: float(one["seconds"]) for one in events if one["event"] == "stage"}
    return round(sum(times.values()), 1)
