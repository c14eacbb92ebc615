"""The train job for learning by trial: a policy practises in a dream or for real.

Real transitions are counted in three places that are never added up: what was recorded before,
what the policy practised on (none in a dream), and what looks at reality took.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dreamgym import __version__, build, dreams
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import (
    POLICY,
    Choose,
    PolicyCard,
    load_policy_card,
    model_folder,
)
from dreamgym.agents.policy_prompt import Format
from dreamgym.audit import check_gate, read_audit
from dreamgym.config import RlConfig, RunConfig
from dreamgym.envs.world import RealWorld
from dreamgym.errors import ConfigError
from dreamgym.eval import evaluate
from dreamgym.jobs.audit import thresholds_of
from dreamgym.jobs.train import save_policy
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.requirement import torch
from dreamgym.protocols import World
from dreamgym.rollout.collect import Answerer, Slot
from dreamgym.rollout.groups import GroupPlan
from dreamgym.runs import RunDir
from dreamgym.train.algorithms import Algorithm, Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.critic import make_critic
from dreamgym.train.loop import (
    LoopPlan,
    Practice,
    Probe,
    Progress,
    Sight,
    Trainee,
    UniformTasks,
    run_loop,
)
from dreamgym.train.losses import Clip
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.policy_fit import PolicyModel
from dreamgym.train.tokens import environment_rewards, outcome_rewards
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import Source, Split, Task, derive_seed

BEST = "best"
"""The folder, inside the run, of the policy that looks at reality found best."""
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
    check_world_gate(config)
    policy, card = load_start(config)
    torch.set_num_threads(wanted.threads or os.cpu_count() or 1)
    llm = LocalLLM(policy.model, policy.tokenizer, name="policy")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(llm.close)
        real = None
        if wanted.world == "real" or wanted.eval_every:
            real = build.make_world(replace(config.env, spec=card.env))
            stack.push_async_callback(real.close)
        practice, offline = await _practice(config, card.env, real, stack)
        trainee = _trainee(config, policy, card, llm)
        probe = await _probe(config, real, card, llm) if real and wanted.eval_every else None
        run.begin()

        def keep(name: str) -> None:
            save_policy(run.path / name, policy, card)

        def row(progress: Progress, figures: dict[str, float]) -> None:
            run.metrics(progress.step, figures)
            on_row(progress, figures)

        progress = await run_loop(
            trainee,
            practice,
            loop_plan(config),
            probe=probe,
            keep_best=lambda: keep(BEST),
            folder=run.path / "checkpoints",
            on_row=row,
        )
    folder = save_policy(run.path / POLICY, policy, card)
    done = Reinforced(folder, card.env, wanted.world, progress, offline, time.monotonic() - started)
    run.result(result_of(config, done))
    run.event("finished", steps=progress.step)
    return done


def check_world_gate(config: RunConfig) -> None:
    """Refuse to train in a dream that no audit has found fit for it, unless told to."""
    wanted = config.rl
    if wanted.world == "real" or wanted.gate == "off":
        return
    if not wanted.gate:
        raise ConfigError(
            f"may one train in {wanted.world}? `dreamgym audit --world {wanted.world} --data ...` "
            "tells: name its run with --gate, or train regardless with --gate off"
        )
    figures = read_audit(Path(wanted.gate))
    path = Path(wanted.gate)
    result = json.loads((path / "result.json" if path.is_dir() else path).read_text("utf-8"))
    if Path(result["world"]).resolve() != Path(wanted.world).resolve():
        raise ConfigError(f"{wanted.gate} is an audit of {result['world']}, not of {wanted.world}")
    reasons = check_gate(figures, thresholds_of(config.audit))
    if reasons:
        raise ConfigError(
            f"the gate of {wanted.world} is shut: {'; '.join(reasons)}. Improve the dream, or "
            "train regardless with --gate off"
        )


def load_start(config: RunConfig) -> tuple[PolicyModel, PolicyCard]:
    """Load the policy to start from, and its card with the temperature to practise at."""
    folder = model_folder(Path(config.policy.model))
    if folder is None:
        raise ConfigError(
            f"learning by trial starts from a policy that can speak; '{config.policy.model}' is "
            "none: make one with `dreamgym train --algo sft` and give its run with --from"
        )
    card = replace(load_policy_card(folder), temperature=config.rl.temperature)
    if card.format is not Format.COMPACT:
        raise ConfigError(
            f"the policy in {folder} speaks the {card.format} format; only compact ones can learn "
            "by trial so far"
        )
    if card.choose is not Choose.NOTHING and card.temperature != 1.0:
        raise ConfigError(
            f"the policy in {folder} chooses among {card.choose} actions, whose probabilities are "
            f"kept at temperature 1; rl.temperature is {card.temperature}"
        )
    return PolicyModel(load_model(folder), load_tokenizer(folder)), card


async def _practice(
    config: RunConfig, env: str, real: RealWorld | None, stack: AsyncExitStack
) -> tuple[Practice, int]:
    """Return where the policy practises, and the real transitions recorded for it."""
    wanted = config.rl
    if wanted.world == "real" and real is not None:
        info = await real.info()
        tasks: tuple[Task, ...] = await real.tasks(Split.TRAIN)
        answerer = Answerer(Source.REAL, info.version, info.mapper)
        return _practised(wanted, real, answerer, tasks, config.seed), 0
    dream = dreams.open_dream(Path(wanted.world), config=config.dream)
    stack.push_async_callback(dream.close)
    if dream.card.env != env:
        raise ConfigError(f"{wanted.world} dreams {dream.card.env}, but the policy plays {env}")
    offline = sum(
        group.transitions
        for group in dream.store.stats()
        if group.env == env and group.source is Source.REAL and group.split is Split.TRAIN
    )
    answerer = Answerer(Source.DREAM, f"dream {Path(wanted.world).name}", "")
    tasks = dream.tasks(Split.TRAIN)
    return _practised(wanted, dream.world, answerer, tasks, config.seed), offline


def _practised(
    wanted: RlConfig, world: World, answerer: Answerer, tasks: tuple[Task, ...], seed: int
) -> Practice:
    names = [name.strip() for name in wanted.tasks.split(",") if name.strip()]
    if names:
        tasks = tuple(dreams.named_task(tasks, name, where=wanted.world) for name in names)
    return Practice(
        world,
        answerer,
        UniformTasks(tasks, seed=seed),
        rewards=outcome_rewards if wanted.reward == "outcome" else environment_rewards,
        learn_unknown=wanted.unknown == "no-reward",
    )


def _trainee(config: RunConfig, policy: PolicyModel, card: PolicyCard, llm: LocalLLM) -> Trainee:
    wanted, algorithm = config.rl, make_algorithm(config)
    model = policy.model
    plan = UpdatePlan(
        epochs=wanted.epochs,
        minibatches=wanted.minibatches,
        tokens_per_pass=wanted.tokens_per_pass,
        learning_rate=wanted.learning_rate,
        kl_stop=wanted.kl_stop or None,
        temperature=wanted.temperature,
        seed=config.seed,
    )
    objective = PolicyObjective(
        clip=Clip(wanted.clip, wanted.clip),
        kl_coefficient=wanted.kl,
        kl_estimator="k2" if wanted.kl_estimator == "k2" else "k3",
        entropy_coefficient=wanted.entropy,
    )
    seed = derive_seed(config.seed, "critic")
    learner = Learner(
        model,
        plan,
        critic=make_critic(model, seed=seed) if algorithm.needs_values else None,
        # Before any checkpoint is loaded: the policy that it all began with.
        reference=copy.deepcopy(model) if wanted.kl else None,
    )
    behaviour = Behaviour("policy", build.make_model_agents(llm, card))
    return Trainee(behaviour, build.make_writer(llm, card), learner, algorithm, objective)


def make_algorithm(config: RunConfig) -> Algorithm:
    """Return the algorithm that the settings name."""
    penalty = config.rl.invalid_penalty
    known: dict[str, Algorithm] = {
        "grpo": Grpo(invalid_penalty=penalty),
        "rloo": Rloo(invalid_penalty=penalty),
        "gigpo": Gigpo(invalid_penalty=penalty),
        "ppo": Ppo(invalid_penalty=penalty),
    }
    if config.rl.group_size < 2 and config.train.algo != "ppo":
        raise ConfigError(
            f"{config.train.algo} compares the episodes of a group: rl.group_size is "
            f"{config.rl.group_size}, at least 2 are needed"
        )
    return known[config.train.algo]


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
        probe_every=wanted.eval_every or 1,
        checkpoint_every=wanted.checkpoint_every,
    )


async def _probe(config: RunConfig, real: RealWorld, card: PolicyCard, llm: LocalLLM) -> Probe:
    """Return what plays the dev tasks, always with the same seeds."""
    wanted = config.rl

    async def laid_out(manner: PolicyCard) -> tuple[Slot, ...]:
        behaviour = Behaviour("policy", build.make_model_agents(llm, manner))
        return await build.make_slots(
            real,
            split=Split.DEV,
            episodes=wanted.eval_episodes,
            policy=lambda slot: behaviour,
            max_steps=wanted.max_steps,
            seed=derive_seed(config.seed, "probe"),
            repeat=False,
        )

    played = {"": await laid_out(card)}
    if wanted.eval_greedy:
        played["_greedy"] = await laid_out(replace(card, temperature=0.0))

    async def probe() -> Sight:
        figures, transitions = {}, 0
        for ending, slots in played.items():
            report = await evaluate(slots, real, concurrency=config.collect.concurrency)
            if not report.success.episodes:
                raise ConfigError(f"every look at {card.env} failed: {report.first_failure}")
            transitions += report.transitions
            figures[f"real/success{ending}"] = report.success.mean
            figures[f"real/refused{ending}"] = report.refused_share
            figures[f"real/failed{ending}"] = float(report.failed)
        return Sight(figures["real/success"], transitions, figures)

    return probe


def result_of(config: RunConfig, done: Reinforced) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    progress = done.progress
    looks = list(progress.probes)
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
        "after": looks[-1] if looks else None,
        "best_step": progress.best_step if looks else None,
        "best_success": progress.best_success if looks else None,
        "looks": looks,
        "real_transitions": {
            "offline": done.offline,
            "online": progress.real_steps,
            "evaluation": progress.probe_steps,
        },
        "dream_transitions": progress.dream_steps,
        "settings": asdict(config.rl),
        "seconds": round(done.seconds, 1),
    }
