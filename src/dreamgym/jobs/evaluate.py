"""The eval job: a policy on one split of a real world, and what that split shares with training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from dreamgym import __version__, build, codec
from dreamgym.config import RunConfig
from dreamgym.envs.overlap import measure_overlap
from dreamgym.eval import EvalReport, evaluate
from dreamgym.runs import RunDir
from dreamgym.types import Split, Trajectory


async def run_evaluate(
    config: RunConfig,
    run: RunDir,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[EvalReport, str]:
    """Evaluate as the settings say. Returns the report and one line on what is held out."""
    wanted = config.eval
    world = build.make_world(config.env)
    played = 0
    episodes = (run.path / "episodes.jsonl").open("w", encoding="utf-8")

    def keep(trajectory: Trajectory) -> None:
        nonlocal played
        played += 1
        episodes.write(codec.encode(trajectory) + "\n")
        on_progress(played)

    try:
        slots = await build.make_slots(
            world,
            split=wanted.split,
            episodes=wanted.episodes,
            policy=build.make_policy(
                wanted.policy, noise=config.collect.noise, probe_share=config.collect.probe_share
            ),
            max_steps=wanted.max_steps,
            seed=config.seed,
            repeat=False,
        )
        run.begin()
        report = await evaluate(
            slots,
            world,
            concurrency=config.collect.concurrency,
            on_episode=keep,
        )
        overlap = None
        if wanted.overlap and wanted.split != Split.TRAIN:
            overlap = await measure_overlap(world, Split(wanted.split))
    finally:
        episodes.close()
        await world.close()
    run.result(
        {
            "command": "eval",
            "env": config.env.spec,
            "split": wanted.split,
            "policy": wanted.policy,
            "seed": config.seed,
            "version": __version__,
            **asdict(report),
            "success": report.success.plain(),
            "overlap": asdict(overlap) if overlap else None,
        }
    )
    return report, overlap.describe() if overlap else ""
