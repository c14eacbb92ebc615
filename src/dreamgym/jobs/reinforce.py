"""The train job for learning by trial: a policy practises in a dream or for real.

Real transitions are counted in three places that are never added up: what was recorded before,
what the policy practised on (none in a dream), and what looks at reality took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dreamgym import __version__, build, dreams
from dreamgym.agents.policy_card import POLICY
from dreamgym.config import RunConfig
from dreamgym.jobs.curriculum import write_pool
from dreamgym.jobs.enrich import GrowingMemory
from dreamgym.jobs.familiar import familiar
from dreamgym.jobs.gate import check_world_gate
from dreamgym.jobs.practice import Grounds, make_probe, open_grounds
from dreamgym.jobs.samples import EPISODES, with_samples
from dreamgym.jobs.train import save_policy
from dreamgym.jobs.trainee import CHECKPOINTS, load_start, make_trainee
from dreamgym.jobs.watch import make_watch
from dreamgym.llm.stack import StackedLLM
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.checkpoint import load_checkpoint
from dreamgym.models.requirement import torch
from dreamgym.rollout.groups import GroupPlan
from dreamgym.runs import MEMORY, RunDir, read_json_lines
from dreamgym.train.loop import LoopPlan, run_loop
from dreamgym.train.progress import Progress, Watch
from dreamgym.train.transfer import SwitchRule, WatchRule

BEST = "best"
"""The folder, inside the run, of the policy that looks at reality found best."""
SAMPLED_EVERY = 10
"""Steps between those of which episodes are kept, where there are no looks to keep time by."""
OnRow = Callable[[Progress, dict[str, float]], None]


@dataclass(frozen=True, slots=True)
class Reinforced:
    """What learning by trial left behind."""

    folder: Path
    env: str
    world: str
    progress: Progress
    offline: int
    """Real transitions that the dream remembers with."""
    seconds: float


async def run_rl(
    config: RunConfig,
    run: RunDir,
    *,
    on_row: OnRow = lambda progress, figures: None,
) -> Reinforced:
    """Let a policy learn by trial, as the settings say."""
    started, wanted = time.monotonic(), config.rl
    begun = next(read_json_lines(run.path / "metrics.jsonl"), None) is not None
    check_world_gate(config, begun=begun)
    policy, card = load_start(config)
    torch.set_num_threads(wanted.threads or os.cpu_count() or 1)
    llm = LocalLLM(policy.model, policy.tokenizer, name="policy")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(llm.close)
        real = None
        if needs_reality(config):
            real = build.make_world(replace(config.env, spec=card.env))
            stack.push_async_callback(real.close)
        server = _server(config, run, stack)
        grounds = await open_grounds(
            config, card.env, real, stack, own=run.store_path, server=server, on_event=run.event
        )
        grounds = _kept(grounds, config, run, stack)
        trainee = make_trainee(config, policy, card, llm)
        probe = await make_probe(config, real, card, llm) if real and wanted.eval_every else None
        watch: Watch | None = None
        if wanted.watch != "off" and grounds.dream is not None and real is not None:
            watch = make_watch(config, grounds.dream, real, card=card, llm=llm, store=grounds.store)
        run.begin()

        def keep(name: str) -> None:
            save_policy(run.path / name, policy, card)

        def row(progress: Progress, figures: dict[str, float]) -> None:
            run.metrics(progress.step, familiar(figures))
            tell_turns(run, progress, figures)
            if "transfer/turn" in figures:
                write_pool(grounds.practice.tasks, run.path)
            on_row(progress, figures)

        progress = await run_loop(
            trainee,
            grounds.practice,
            loop_plan(config),
            then=grounds.then,
            probe=probe,
            watch=watch,
            keep_best=lambda: keep(BEST),
            folder=run.path / CHECKPOINTS,
            on_row=row,
        )
    if not progress.turns:
        write_pool(grounds.practice.tasks, run.path)
    folder = save_policy(run.path / POLICY, policy, card)
    seconds = time.monotonic() - started
    done = Reinforced(folder, card.env, wanted.world, progress, grounds.offline, seconds)
    run.result(result_of(config, done) | ({"llm": server.metrics()} if server else {}))
    run.event("finished", steps=progress.step)
    return done


def _server(config: RunConfig, run: RunDir, stack: AsyncExitStack) -> StackedLLM | None:
    """Open the server that dreams, where one does."""
    if config.rl.world != dreams.SERVER:
        return None
    server = build.make_llm(config.llm, folder=run.path, listeners=(run.event,))
    stack.push_async_callback(server.close)
    return server


def _kept(grounds: Grounds, config: RunConfig, run: RunDir, stack: AsyncExitStack) -> Grounds:
    """Return the grounds with all that is kept of practice: to dream with, and to be read."""
    if config.rl.enrich:
        grounds = _enriched(grounds, run, stack)
    folder, then = run.path / EPISODES, grounds.then
    every = config.rl.eval_every or SAMPLED_EVERY
    return replace(
        grounds,
        practice=with_samples(grounds.practice, folder, every=every),
        then=with_samples(then, folder, every=1) if then else None,
    )


def _enriched(grounds: Grounds, run: RunDir, stack: AsyncExitStack) -> Grounds:
    """Return the grounds with a dream that remembers what is dreamt in it."""
    if grounds.dream is None:
        return grounds
    found = load_checkpoint(run.path / CHECKPOINTS)
    made = 0 if found is None else found.step
    grown = GrowingMemory(grounds.dream, run.path / MEMORY, made=made)
    stack.callback(grown.close)
    return replace(grounds, practice=replace(grounds.practice, remember=grown.remember))


def needs_reality(config: RunConfig) -> bool:
    """Return whether any real step is to be made: to practise, to look, or to watch a dream."""
    wanted = config.rl
    in_dream = wanted.world != "real"
    return not in_dream or bool(wanted.eval_every or wanted.then_real or wanted.watch != "off")


def tell_turns(run: RunDir, progress: Progress, figures: Mapping[str, float]) -> None:
    """Write down when practice went elsewhere, and when the dream was found wanting."""
    if "transfer/turn" in figures:
        run.event("turn", **asdict(progress.turns[-1]))
    if figures.get("gap/alarm"):
        run.event("mistrust", **progress.readings[-1])


def loop_plan(config: RunConfig) -> LoopPlan:
    """Return how long, and in what portions."""
    wanted = config.rl
    return LoopPlan(
        wanted.steps,
        groups=wanted.groups,
        play=GroupPlan(
            members=wanted.group_size,
            max_steps=wanted.max_steps,
            concurrency=max(config.collect.concurrency, wanted.group_size),
            seed=config.seed,
        ),
        learning_rate=wanted.learning_rate,
        warmup_steps=wanted.warmup_steps,
        cooldown_steps=wanted.cooldown_steps,
        probe_every=wanted.eval_every or 1,
        checkpoint_every=wanted.checkpoint_every,
        real_steps=wanted.real_steps,
        real_transitions=wanted.then_real or None,
        switch=SwitchRule(
            step=wanted.switch_step,
            window=wanted.switch_window,
            rise=wanted.switch_rise,
            looks=wanted.switch_looks,
            max_unknown=config.audit.max_unknown,
        ),
        watch=WatchRule(
            acts="note" if wanted.watch == "off" else wanted.watch,
            every=wanted.watch_every,
            min_precision=wanted.watch_precision,
            min_wins=wanted.watch_wins,
        ),
    )


def result_of(config: RunConfig, done: Reinforced) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    progress = done.progress
    looks = list(progress.probes)
    # A policy that went back to its best look is the one that was seen then.
    final = progress.turns[-1].weights if progress.stopped else progress.step
    after = [look for look in looks if look["step"] == final]
    return {
        "command": "train",
        "algo": config.train.algo,
        "env": done.env,
        "world": done.world,
        "gate": config.rl.gate if done.world != "real" else None,
        "seed": config.seed,
        "version": __version__,
        "start": config.policy.model,
        "policy": str(done.folder),
        "steps": progress.step,
        "before": looks[0] if looks else None,
        "after": after[-1] if after else None,
        "best_step": progress.best_step if looks else None,
        "best_success": progress.best_success if looks else None,
        "looks": looks,
        "real_transitions": {
            "offline": done.offline,
            "online": progress.real_steps,
            "evaluation": progress.probe_steps + progress.watch_steps,
            "evaluation_watch": progress.watch_steps,
            "online_ceiling": config.rl.then_real or None,
        },
        "turns": [asdict(turn) for turn in progress.turns],
        "watch": list(progress.readings),
        "dream_transitions": progress.dream_steps,
        "settings": asdict(config.rl),
        "seconds": round(done.seconds, 1),
    }
