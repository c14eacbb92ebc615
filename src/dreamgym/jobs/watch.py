"""The watch over a dream while a policy learns in it: its dreams of now, told again for real."""

from __future__ import annotations

import random
from dataclasses import replace

from dreamgym import build
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.audit.interval import Figure
from dreamgym.audit.on_policy import OnPolicy, play_and_retell, sum_up_policy
from dreamgym.config import RunConfig
from dreamgym.dreams import Dream
from dreamgym.envs.world import RealWorld, WorldInfo
from dreamgym.errors import ConfigError
from dreamgym.jobs.practice import chosen_tasks, keep_episodes
from dreamgym.models.as_llm import LocalLLM
from dreamgym.replay import ExperienceStore
from dreamgym.rollout.collect import Answerer, plan_slots
from dreamgym.train.progress import Watch
from dreamgym.train.transfer import Reading
from dreamgym.types import Source, Split, Trajectory, derive_seed, digest


def make_watch(
    config: RunConfig,
    dream: Dream,
    real: RealWorld,
    *,
    card: PolicyCard,
    llm: LocalLLM,
    store: ExperienceStore | None = None,
) -> Watch:
    """Return what plays some of the practised tasks in the dream and tells them again for real.

    They are the same tasks and seeds each time, so that readings differ by the policy alone. What
    was told again for real is kept where there is a store: it cost as much as any other experience.
    """
    wanted, seed = config.rl, derive_seed(config.seed, "watch")
    tasks = chosen_tasks(config, dream.tasks(Split.TRAIN))
    tasks = tuple(random.Random(seed).sample(tasks, min(wanted.watch_episodes, len(tasks))))
    behaviour = Behaviour("policy", build.make_model_agents(llm, card))
    slots = plan_slots(
        tasks,
        episodes=wanted.watch_episodes,
        behaviour=lambda slot: behaviour,
        answerer=Answerer(Source.DREAM, f"dream {wanted.world}", ""),
        max_steps=wanted.max_steps,
        seed=seed,
    )

    async def watch(step: int) -> Reading:
        pairs = await play_and_retell(
            slots, dream.world, real, concurrency=config.collect.concurrency
        )
        if store is not None:
            info = await real.info()
            who = f"{config.train.algo}@watch{step}"
            keep_episodes(store, [as_experience(pair.real, who, info) for pair in pairs
                                  if not pair.failed])  # fmt: skip
        found = sum_up_policy("policy", pairs, {})
        if found.failed == found.episodes:
            raise ConfigError(f"every episode of the watch failed: {found.first_failure}")
        return reading_of(found)

    return watch


def as_experience(told: Trajectory, who: str, engine: WorldInfo) -> Trajectory:
    """Return an episode that was told again for real as a record of its own.

    The slots are the same at every reading, so an episode is known by who played it and how.
    """
    actions = "|".join(step.action.text for step in told.steps)
    made = replace(
        told.provenance, behaviour=who, engine=engine.version, mapper=engine.mapper, prompt=""
    )
    return replace(told, id=f"{told.id}-{digest(f'{who}|{actions}')}", provenance=made)


def reading_of(found: OnPolicy) -> Reading:
    """Return what a loop needs to know, under the names of its figures."""
    outcome = found.figures
    named: dict[str, Figure] = {
        "gap/outcome_agreement": outcome.agreement,
        "gap/dream_minus_real": outcome.gap,
        "gap/dream_success": outcome.dream_success,
        "gap/real_success": outcome.real_success,
    }
    figures = {name: figure.mean for name, figure in named.items() if figure.known}
    if found.refused_dream.known and found.refused_real.known:
        figures["gap/refused"] = found.refused_dream.mean - found.refused_real.mean
    figures["gap/watch_unknown"] = found.unknown / max(1, found.episodes)
    figures["gap/watch_failed"] = float(found.failed)
    precision = outcome.precision
    return Reading(
        precision.mean if precision.known else None, precision.count, found.real_steps, figures
    )
