"""The composition root: settings in, live objects out. Only the command line and examples see it.

Here, and nowhere else, concrete classes are chosen by name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from dreamgym.agents import Behaviour, make_behaviour
from dreamgym.agents.behaviour import BEHAVIOURS, AgentFactory
from dreamgym.agents.language_model import LanguageModelAgent
from dreamgym.agents.policy import Manner, PolicyAgent, listed_actions
from dreamgym.agents.policy_card import (
    CARD,
    Choose,
    PolicyCard,
    load_policy_card,
    model_folder,
    read_changes,
)
from dreamgym.agents.policy_tokens import Writer
from dreamgym.agents.policy_writers import writer_for
from dreamgym.config import EnvConfig, LlmConfig, ReplayConfig
from dreamgym.envs.world import RealWorld, open_world
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.experience.affordances import affordances_from
from dreamgym.experience.card import CARD as DREAM
from dreamgym.protocols import LLM, Agent, Embedder, Env
from dreamgym.replay import Capacity, ExperienceStore, open_store
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.rollout.collect import Answerer, Slot, plan_slots
from dreamgym.types import Observation, Source, Split, Task

if TYPE_CHECKING:
    from dreamgym.llm.breaker import EventSink
    from dreamgym.llm.http import HttpLLM
    from dreamgym.llm.stack import StackedLLM
    from dreamgym.models.as_llm import LocalLLM


def make_world(config: EnvConfig) -> RealWorld:
    """Open the real world that the settings name."""
    workers = config.workers or os.cpu_count() or 1
    return open_world(config.spec, workers=workers, time_limit=config.time_limit)


def make_embedder(name: str) -> Embedder:
    """Make the embedder of that name. Heavy ones are imported only here."""
    if name.startswith(("http://", "https://")):
        from dreamgym.replay.embed_http import HttpEmbedder

        return HttpEmbedder(name)
    if name == "static":
        from dreamgym.replay.embed_static import StaticEmbedder

        return StaticEmbedder()
    if name == "minilm":
        from dreamgym.replay.embed_minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    if name == "hashing":
        return HashingEmbedder()
    known = ("hashing", "static", "minilm", "https://...")
    raise ConfigError(f"unknown embedder '{name}'.{did_you_mean(name, known)}")


def make_store(path: Path, config: ReplayConfig) -> ExperienceStore:
    """Open the experience store at a path."""
    return open_store(
        path,
        embedder=make_embedder(config.embedder),
        allow_test=config.held_out,
        capacity=Capacity(real=config.real_capacity or None, dream=config.dream_capacity),
    )


def make_llm(
    config: LlmConfig, *, folder: Path | None = None, listeners: Sequence[EventSink] = ()
) -> StackedLLM:
    """Open the language model that the settings name: cached, guarded, paid for.

    Args:
        config: the settings.
        folder: a run directory. It keeps the ledger of spending, so that a run which is killed and
            resumed cannot spend its ceiling twice, and the cache unless the settings name a place.
        listeners: are told when everyone waits for the server; `RunDir.event` is one.
    """
    for name, example in (("url", "http://127.0.0.1:8000/v1"), ("model", "my-model")):
        if not getattr(config, name):
            raise ConfigError(f"llm.{name} is not set: add --set llm.{name}={example}")
    if config.key_env and not os.environ.get(config.key_env, "").strip():
        raise ConfigError(f"the environment variable {config.key_env} (llm.key_env) is empty")
    place = None if config.cache == "off" else Path(config.cache) if config.cache else folder
    if config.offline and place is None:
        raise ConfigError("llm.offline needs a cache to answer from: set llm.cache to its folder")
    from dreamgym.llm.stack import StackedLLM

    return StackedLLM(
        _make_server(config, ledger=folder / "spend.jsonl" if folder else None),
        failures=config.failures,
        longest_wait=config.longest_wait,
        patience=config.patience,
        cache=place / "llm_cache.sqlite" if place else None,
        offline=config.offline,
        listeners=listeners,
    )


def _make_server(config: LlmConfig, *, ledger: Path | None) -> HttpLLM:
    from dreamgym.llm import HttpLLM, Limits, Price, Spend
    from dreamgym.llm.wire import DIALECTS

    return HttpLLM(
        config.url,
        config.model,
        key_env=config.key_env,
        limits=Limits(
            concurrency=config.concurrency,
            requests_per_minute=config.requests_per_minute,
            tokens_per_minute=config.tokens_per_minute,
            attempt_seconds=config.attempt_seconds,
            total_seconds=config.total_seconds,
            retries=config.retries,
        ),
        dialect=replace(DIALECTS[config.dialect], chat=config.api == "chat"),
        spend=Spend(
            ceiling=config.cost_ceiling or None,
            token_ceiling=config.token_ceiling or None,
            ledger=ledger,
        ),
        price=Price(config.prompt_price, config.completion_price),
    )


def make_policy(
    name: str, *, noise: float = 0.3, probe_share: float = 0.6
) -> Callable[[int], Behaviour]:
    """Return who acts in which slot: a shipped policy, your own, or a model directory.

    A model directory, or the run of a training, may be followed by what differs from its card, as
    in `runs/mine?temperature=0&choose=listed`.
    """
    path, _, changes = name.partition("?")
    folder = model_folder(Path(path))
    if folder is None:
        if Path(path).is_dir() and name not in BEHAVIOURS:
            raise ConfigError(
                f"{path} holds no policy: it is no model folder, and no finished training"
            )
        return make_behaviour(name, noise=noise, probe_share=probe_share)
    if (Path(path) / DREAM).is_file():
        raise ConfigError(f"{path} is a dream: it answers actions, and takes none")
    from dreamgym.models.as_llm import LocalLLM
    from dreamgym.models.load import load_model, load_tokenizer

    # A folder inside a run has the name of all others; the run's own tells more.
    shown = Path(path).name if folder != Path(path) else folder.name
    llm = LocalLLM(load_model(folder), load_tokenizer(folder), name=shown)
    if (folder / CARD).is_file():
        card = replace(load_policy_card(folder), **read_changes(changes))
        make, settings = make_model_agents(llm, card), f"{weights_digest(folder)}?{changes}"
    else:
        make, settings = partial(_plain_agent, llm), weights_digest(folder)
    chosen = Behaviour(f"model:{shown}", make, settings=settings)
    return lambda slot: chosen


def env_of_policy(name: str) -> str | None:
    """Return the environment that a trained policy plays, or None where the name means no such."""
    folder = model_folder(Path(name.partition("?")[0]))
    if folder is None or not (folder / CARD).is_file():
        return None
    return load_policy_card(folder).env


def _plain_agent(llm: LLM, env: Env, seed: int) -> Agent:
    return LanguageModelAgent(llm, seed)


def make_model_agents(llm: LocalLLM, card: PolicyCard) -> AgentFactory:
    """Return what makes the agents of a policy, one per episode, all over the same model."""
    manner = Manner(temperature=card.temperature, options=_make_options(card))
    writer = make_writer(llm, card)
    return lambda env, seed: PolicyAgent(llm, writer, seed, manner=manner)


def make_writer(llm: LocalLLM, card: PolicyCard) -> Writer:
    """Return how a policy writes its episodes."""
    return writer_for(card, llm.tokenizer, positions=llm.positions)


def _make_options(card: PolicyCard) -> Callable[[Observation], Sequence[str]] | None:
    if card.choose is Choose.NOTHING:
        return None
    if card.choose is Choose.LISTED:
        return listed_actions
    known = affordances_from(card.knows) if card.knows else None
    if known is None or not known.frames:
        raise ConfigError("this policy knows no kinds of action to choose among: train it again")
    remembered = lru_cache(4096)(known.candidates)
    return lambda now: remembered(now.text)


def weights_digest(folder: Path) -> str:
    """Name what is in a model directory, so that other weights are another policy."""
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors"):
            total.update(path.read_bytes())
    return total.hexdigest()


async def make_slots(
    world: RealWorld,
    *,
    split: str,
    episodes: int,
    policy: Callable[[int], Behaviour],
    max_steps: int,
    seed: int,
    repeat: bool = True,
    most_tasks: int = 0,
) -> tuple[Slot, ...]:
    """Lay out the episodes of a split, under the name of the engine that will answer them.

    With `repeat` off each task is played once at most, however many episodes are asked for; with
    `most_tasks` only the first so many tasks are played.
    """
    tasks: tuple[Task, ...] = await world.tasks(Split(split))
    if not tasks:
        raise ConfigError(
            f"there are no tasks to play: {world.spec} has none in its {split} split "
            "(`dreamgym tasks` lists them). If it reads its games from a folder, that part is not "
            "there; else choose another --split"
        )
    tasks = tasks[:most_tasks] if most_tasks else tasks
    if policy(0).name == "expert":
        await _check_expert(world, tasks[:3])
    info = await world.info()
    return plan_slots(
        tasks,
        episodes=episodes if repeat else min(episodes, len(tasks)),
        behaviour=policy,
        answerer=Answerer(Source.REAL, info.version, info.mapper),
        max_steps=max_steps,
        seed=seed,
    )


async def _check_expert(world: RealWorld, tasks: Sequence[Task]) -> None:
    """Refuse an engine that knows no way to win at all, rather than let an expert stumble about."""
    for task in tasks:
        env = await world.open(task)
        try:
            await env.reset(0)
            if await env.expert():
                return
        finally:
            await env.close()
    if tasks:
        raise ConfigError(f"the engine of {world.spec} has no expert; choose another policy")


__all__ = [
    "make_embedder",
    "make_llm",
    "make_model_agents",
    "make_policy",
    "make_slots",
    "make_store",
    "make_world",
    "make_writer",
    "weights_digest",
]
