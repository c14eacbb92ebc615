"""Where a policy practises, in a dream or for real, and how reality is looked at meanwhile."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from dreamgym import build, dreams
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.config import RlConfig, RunConfig
from dreamgym.envs.world import RealWorld
from dreamgym.errors import ConfigError
from dreamgym.eval import evaluate
from dreamgym.models.as_llm import LocalLLM
from dreamgym.protocols import World
from dreamgym.rollout.collect import Answerer, Slot
from dreamgym.train.loop import Practice, Probe, Sight, UniformTasks
from dreamgym.train.tokens import environment_rewards, outcome_rewards
from dreamgym.types import Source, Split, Task, derive_seed


async def make_practice(
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


async def make_probe(config: RunConfig, real: RealWorld, card: PolicyCard, llm: LocalLLM) -> Probe:
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
