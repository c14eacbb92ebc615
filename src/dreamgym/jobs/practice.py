"""Where a policy practises, in a dream or for real, and how reality is looked at meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from dreamgym import build, dreams
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.config import RunConfig
from dreamgym.dreams import Dream
from dreamgym.envs.world import RealWorld
from dreamgym.errors import ConfigError, ReplayError
from dreamgym.eval import evaluate
from dreamgym.jobs.curriculum import make_sampler
from dreamgym.llm.breaker import EventSink
from dreamgym.models.as_llm import LocalLLM
from dreamgym.protocols import LLM, World
from dreamgym.replay import ExperienceStore
from dreamgym.rollout.collect import Answerer, Slot
from dreamgym.rollout.groups import Group
from dreamgym.tasks.refill import unheard
from dreamgym.train.loop import Practice, TaskSampler
from dreamgym.train.progress import Probe, Sight
from dreamgym.train.tokens import environment_rewards, outcome_rewards
from dreamgym.types import Source, Split, Task, Trajectory, derive_seed


@dataclass(frozen=True, slots=True)
class Grounds:
    """Where a policy practises, and what it goes on with."""

    practice: Practice
    then: Practice | None = None
    """Reality, after the dream."""
    dream: Dream | None = None
    offline: int = 0
    """Real transitions that were made before, for the dream to learn from and to remember."""
    store: ExperienceStore | None = None
    """The one that the settings name for what is made for real."""


async def open_grounds(
    config: RunConfig,
    env: str,
    real: RealWorld | None,
    stack: AsyncExitStack,
    *,
    own: Path,
    server: LLM | None = None,
    on_event: EventSink = unheard,
) -> Grounds:
    """Open where the policy practises.

    Args:
        config: the settings.
        env: what the policy plays.
        real: the real world, where the settings need it.
        stack: closes what was opened.
        own: where the real steps go that are made after a dream, unless the settings name a store.
        server: who dreams, where the world is `llm`.
        on_event: is told what becomes of tasks that a curriculum makes up.
    """
    wanted = config.rl
    if wanted.world == "real" and real is not None:
        return Grounds(await _real_practice(config, real, on_event))
    # Else policies learn to do what the model has no words for: it costs them nothing.
    how = replace(config.dream, known_words=config.dream.known_words or _counts_unknown(config))
    dreamt = replace(config, dream=how, env=replace(config.env, spec=env))
    dream = dreams.open_named(wanted.world, dreamt, llm=server)
    stack.push_async_callback(dream.close)
    if dream.card.env != env:
        raise ConfigError(f"{wanted.world} dreams {dream.card.env}, but the policy plays {env}")
    offline, refused = recorded_before(dream)
    answerer = Answerer(Source.DREAM, f"dream {Path(wanted.world).name}", "")
    tasks = _to_practise(config, dream.tasks(Split.TRAIN))
    sampler = make_sampler(config, tasks, dream=dream, on_event=on_event)
    practice = _practised(config, dream.world, answerer, sampler)
    practice = replace(practice, refused_offline=refused)
    if real is None or not (wanted.then_real or wanted.store):
        return Grounds(practice, None, dream, offline)
    store = build.make_store(Path(wanted.store) if wanted.store else own, config.replay)
    stack.callback(store.close)
    named = store if wanted.store else None
    if not wanted.then_real:
        return Grounds(practice, None, dream, offline, named)
    then = await _real_practice(config, real, on_event)
    then = replace(then, remember=rememberer(store, config.train.algo))
    return Grounds(practice, then, dream, offline, named)


async def _real_practice(config: RunConfig, real: RealWorld, on_event: EventSink) -> Practice:
    info = await real.info()
    answerer = Answerer(Source.REAL, info.version, info.mapper)
    tasks = _to_practise(config, await real.tasks(Split.TRAIN))
    sampler = make_sampler(config, tasks, dream=None, on_event=on_event)
    return _practised(config, real, answerer, sampler)


def recorded_before(dream: Dream) -> tuple[int, float | None]:
    """Return the real steps on record, and the share of those on train tasks that were refused.

    Steps are counted as they were made: the store's own count is less, since it keeps equal ones
    once.
    """
    made, answers = 0, list[bool]()
    for one in dream.store.trajectories(source=Source.REAL, env=dream.card.env):
        made += len(one.steps)
        if one.task.split is Split.TRAIN:
            answers += [step.result.refused for step in one.steps]
    return made, sum(answers) / len(answers) if answers else None


def rememberer(store: ExperienceStore, algo: str) -> Callable[[int, Sequence[Group]], None]:
    """Return what keeps the episodes of a step as real experience, under the step's name."""

    def remember(step: int, groups: Sequence[Group]) -> None:
        played = [one for group in groups for one in group.episodes]
        keep_episodes(
            store,
            [
                replace(one, provenance=replace(one.provenance, behaviour=f"{algo}@{step}"))
                for one in played
            ],
        )

    return remember


def keep_episodes(store: ExperienceStore, episodes: Iterable[Trajectory]) -> None:
    """Store episodes, none twice; those that broke or were over at once hold no experience."""
    kept = [one for one in episodes if one.error is None and one.steps]
    for refusal in store.add(kept).refused:
        if refusal.index is None:
            raise ReplayError(f"{store.path} refuses an episode: {refusal.reason}")


def _practised(
    config: RunConfig, world: World, answerer: Answerer, sampler: TaskSampler
) -> Practice:
    return Practice(
        world,
        answerer,
        sampler,
        rewards=outcome_rewards if config.rl.reward == "outcome" else environment_rewards,
        learn_unknown=_counts_unknown(config),
    )


def _counts_unknown(config: RunConfig) -> bool:
    return config.rl.unknown == "no-reward"


def _to_practise(config: RunConfig, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    if not tasks:
        raise ConfigError(
            f"{config.rl.world} has no tasks of the train split to practise: the pool is empty. "
            "A dream knows those that were recorded: `dreamgym collect --split train` and fit again"
        )
    return chosen_tasks(config, tasks)


def chosen_tasks(config: RunConfig, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Return the tasks that the settings name, or all."""
    names = [name.strip() for name in config.rl.tasks.split(",") if name.strip()]
    if not names:
        return tasks
    return tuple(dreams.named_task(tasks, name, where=config.rl.world) for name in names)


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
            figures[f"real/episodes{ending}"] = float(report.success.episodes)
            figures[f"real/refused{ending}"] = report.refused_share
            figures[f"real/failed{ending}"] = float(report.failed)
        return Sight(figures["real/success"], transitions, figures)

    return probe
