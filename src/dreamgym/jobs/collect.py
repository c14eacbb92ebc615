"""The collect job: lay out the episodes, play the missing ones, store them, sum up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym import __version__, build
from dreamgym.config import RunConfig
from dreamgym.envs.workers import PoolStats
from dreamgym.errors import ConfigError, ReplayError
from dreamgym.replay import ExperienceStore, copy_store
from dreamgym.rollout.record import Recorded, record, recorded_of
from dreamgym.rollout.summary import Summary, summarise
from dreamgym.runs import RunDir, read_json_lines
from dreamgym.types import Split, Trajectory


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the real steps came, and what of the workers' time was not the engine's."""

    steps_per_second: float
    outside_engine: float


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection left behind."""

    store: Path
    summary: Summary
    failures: tuple[tuple[str, int], ...]
    """Episodes that broke, by kind of failure; they are in no other figure."""
    first_failure: str
    """What the first of them said."""
    seconds: float
    speed: Speed | None
    """Of this call alone; None where nothing was left to play."""
    restarts: int
    """Workers that had to be replaced."""


async def run_collect(
    config: RunConfig,
    run: RunDir,
    *,
    on_progress: Callable[[Recorded], None] = lambda state: None,
) -> Collected:
    """Collect what the settings ask for and is not there yet."""
    wanted = config.collect
    if wanted.split == Split.TEST and not config.replay.held_out:
        raise ConfigError(
            "test tasks are held out: an experience store must not learn them. Use `dreamgym eval`,"
            " or a store of their own with --set replay.held_out=true"
        )
    path = _begun(config, run)
    policy = build.make_policy(wanted.policy, noise=wanted.noise, probe_share=wanted.probe_share)
    store = build.make_store(path, config.replay)
    world = build.make_world(config.env)
    started = time.monotonic()
    try:
        slots = await build.make_slots(
            world,
            split=wanted.split,
            episodes=wanted.episodes,
            policy=policy,
            max_steps=wanted.max_steps,
            seed=config.seed,
            most_tasks=wanted.tasks,
        )
        run.begin()
        finished = store.trajectory_ids()
        before, playing = world.stats(), time.monotonic()
        await record(
            slots,
            world,
            _Strict(store),
            finished=finished,
            concurrency=wanted.concurrency,
            on_failure=lambda failed: _note_failure(run, failed),
            on_progress=on_progress,
        )
        speed = _speed(before, world.stats(), time.monotonic() - playing)
        lost = _lost(run.path, {slot.trajectory_id for slot in slots} - store.trajectory_ids())
        summary = summarise(recorded_of(slots, store.trajectories(env=world.spec)))
        collected = Collected(
            store=path,
            summary=summary,
            failures=tuple(Counter(event["kind"] for event in lost).most_common()),
            first_failure=lost[0]["message"] if lost else "",
            seconds=time.monotonic() - started,
            speed=speed if any(slot.trajectory_id not in finished for slot in slots) else None,
            restarts=world.stats().restarts,
        )
    finally:
        await world.close()
        store.close()
    if collected.speed is not None or not run.result_path.exists():
        run.result(result_of(config, collected))
    run.event("finished", episodes=summary.episodes)
    return collected


def _begun(config: RunConfig, run: RunDir) -> Path:
    """Return where experience goes, begun as a copy of another store where the settings say so."""
    path = Path(config.replay.store) if config.replay.store else run.store_path
    first = config.collect.begin_with
    if first and config.replay.store:
        raise ConfigError(
            f"--begin-with {first} makes a store of the run's own, but --store names {path}: "
            "give one of them"
        )
    if first and not path.exists():  # A run that goes on has its copy, and more in it.
        copy_store(Path(first), path)
    return path


def _lost(run: Path, missing: set[str]) -> list[dict[str, Any]]:
    """Return the last failure of each episode that broke and was not made up for by a later try."""
    events = read_json_lines(run / "events.jsonl")
    failed = {event["id"]: event for event in events if event["event"] == "episode_failed"}
    return [event for name, event in failed.items() if name in missing]


def result_of(config: RunConfig, collected: Collected) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    summary = collected.summary
    return {
        "command": "collect",
        "env": config.env.spec,
        "split": config.collect.split,
        "policy": config.collect.policy,
        "seed": config.seed,
        "version": __version__,
        "store": str(collected.store),
        "real_transitions": {"offline": summary.transitions, "online": 0},
        "episodes": summary.episodes,
        "failed": dict(collected.failures),
        "success": {name: rate.plain() for name, rate in summary.success},
        "refused_share": round(summary.refused_share, 4),
        "no_effect": summary.no_effect,
        "distinct_states": summary.distinct_states,
        "distinct_pairs": summary.distinct_pairs,
        "verbs": dict(summary.verbs),
        "tasks": summary.tasks,
        "lengths": [summary.shortest, summary.median_length, summary.longest],
        "seconds": round(collected.seconds, 2),
        "speed": asdict(collected.speed) if collected.speed else None,
        "worker_restarts": collected.restarts,
    }


@dataclass(frozen=True, slots=True)
class _Strict:
    """A store whose refusal of a whole trajectory stops the run: real experience is never lost."""

    store: ExperienceStore

    def add(self, trajectories: Sequence[Trajectory]) -> object:
        report = self.store.add(trajectories)
        for refusal in report.refused:
            if refusal.index is None:
                raise ReplayError(f"the store refuses {refusal.trajectory_id}: {refusal.reason}")
        return report


def _note_failure(run: RunDir, failed: Trajectory) -> None:
    error = failed.error
    if error is not None:
        run.event(
            "episode_failed",
            id=failed.id,
            task=failed.task.id,
            kind=error.kind,
            where=error.where,
            message=error.message,
        )


def _speed(before: PoolStats, after: PoolStats, seconds: float) -> Speed:
    inside = after.engine_seconds - before.engine_seconds
    return Speed(
        steps_per_second=round((after.steps - before.steps) / seconds, 1),
        outside_engine=round(1.0 - inside / (seconds * after.workers), 4),
    )
