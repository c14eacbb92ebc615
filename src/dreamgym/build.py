"""The composition root: settings in, live objects out. Only the command line and examples see it.

Here, and nowhere else, concrete classes are chosen by name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dreamgym.agents import Behaviour, make_behaviour
from dreamgym.agents.language_model import LanguageModelAgent
from dreamgym.config import EnvConfig, ReplayConfig
from dreamgym.envs.world import RealWorld, open_world
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.protocols import Embedder
from dreamgym.replay import Capacity, ExperienceStore, open_store
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.rollout.collect import Answerer, Slot, plan_slots
from dreamgym.types import Source, Split, Task


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


def make_policy(
    name: str, *, noise: float = 0.3, probe_share: float = 0.6
) -> Callable[[int], Behaviour]:
    """Return who acts in which slot: a shipped policy, your own, or a model directory."""
    folder = Path(name)
    if not (folder / "config.json").is_file():
        return make_behaviour(name, noise=noise, probe_share=probe_share)
    from dreamgym.models.as_llm import LocalLLM
    from dreamgym.models.load import load_model, load_tokenizer

    llm = LocalLLM(load_model(folder), load_tokenizer(folder), name=folder.name)
    chosen = Behaviour(
        f"model:{folder.name}",
        lambda env, seed: LanguageModelAgent(llm, seed),
        settings=_weights_digest(folder),
    )
    return lambda slot: chosen


def _weights_digest(folder: Path) -> str:
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
) -> tuple[Slot, ...]:
    """Lay out the episodes of a split, under the name of the engine that will answer them.

    With `repeat` off each task is played once at most, however many episodes are asked for.
    """
    tasks: tuple[Task, ...] = await world.tasks(Split(split))
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


__all__ = ["make_embedder", "make_policy", "make_slots", "make_store", "make_world"]
