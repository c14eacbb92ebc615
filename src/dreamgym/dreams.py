"""Opening dreams: from a folder that `fit` left, or over any language model, to a `DreamWorld`.

Part of the composition root, like `build.py`: it chooses concrete classes, and only the command
line, jobs and examples see it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dreamgym import build
from dreamgym.config import DreamConfig, EnvConfig, ReplayConfig, RunConfig
from dreamgym.envs.spec import parse_spec
from dreamgym.errors import ConfigError, EnvError, did_you_mean
from dreamgym.experience.card import CARD, DreamCard, load_card
from dreamgym.experience.doubt import FLAGS, FlagsOnly, Pessimism, SecondOpinion
from dreamgym.experience.grounding import Grounding, KnownKinds
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style, Switches
from dreamgym.experience.task_prompt import Job
from dreamgym.experience.world import DreamWorld, Openings
from dreamgym.protocols import LLM
from dreamgym.replay import ExperienceStore, GroupStats
from dreamgym.replay.snapshot import Snapshot
from dreamgym.types import Opening, Source, Split, Task

if TYPE_CHECKING:
    from dreamgym.models.as_llm import LocalLLM

MODEL = "model"
"""The folder of the weights inside the run of a fit."""
SERVER, SMOLLM2 = "llm", "smollm2"
"""Worlds by name: the model of `[llm]`, and the one whose weights come in a package."""
LONGEST_ANSWER = {Style.COMPACT: 160, Style.FULL: 1024}
"""In tokens."""


@dataclass(frozen=True, slots=True)
class Dream:
    """A dream that is open: the world, what it remembers with, and what it is."""

    world: DreamWorld
    memory: Snapshot
    store: ExperienceStore
    card: DreamCard

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """Return the recorded tasks of a split, goals filled in, in the order of their ids."""
        openings = recorded_openings(self.store, self.card.env)
        tasks = [opening.task for opening in openings.values()]
        return tuple(sorted((t for t in tasks if t.split is split), key=lambda task: task.id))

    async def close(self) -> None:
        """Let go of the model and the store."""
        await self.world.close()
        self.memory.close()
        self.store.close()


def open_dream(
    folder: Path,
    *,
    store: Path | None = None,
    config: DreamConfig | None = None,
    openings: Openings | None = None,
) -> Dream:
    """Open a fitted dream.

    Args:
        folder: the run of a `dreamgym fit`.
        store: the experience to remember with; by default the one that it was fitted on.
        config: how it answers. What was learnt (history, reasoning, window) stays as it was learnt.
        openings: gives first states of tasks that the store has no record of.
    """
    card = load_card(folder)
    path = store or Path(card.store)
    if not path.is_file():
        raise ConfigError(f"the dream in {folder} remembers with {path}, which is gone: --store")
    card = replace(card, store=str(path))
    wanted = config or DreamConfig()
    llm = _fitted(folder, card, wanted, name=folder.name)
    return dream_over(llm, card, config=wanted, openings=openings)


def dream_over(
    llm: LLM, card: DreamCard, *, config: DreamConfig, openings: Openings | None = None
) -> Dream:
    """Make a dream over any language model that is spoken to as the card says."""
    # First, because it may not be there, and a store that is open wants to be closed.
    second = _second(config, env=card.env)
    store = build.make_store(Path(card.store), ReplayConfig(embedder=card.embedder))
    memory = store.snapshot(env=card.env)
    world = DreamWorld(
        _speaker(llm, card, config),
        spec=f"dream:{card.env}",
        openings=_known_openings(store, card.env, openings),
        memory=memory,
        references=card.references,
        grounding=Grounding(card.known) if config.grounding else None,
        ledger=config.ledger,
        pessimism=Pessimism(
            min_similarity=config.min_similarity,
            min_confidence=config.min_confidence,
            known_pages=config.known_pages,
            known_wins=config.known_wins,
            known_losses=config.known_losses,
            known_words=config.known_words,
            second=second,
        ),
        outcome_only=config.outcome_only,
        share_answers=config.share_answers,
    )
    return Dream(world, memory, store, card)


def open_named(world: str, config: RunConfig, *, llm: LLM | None = None) -> Dream:
    """Open the dream that `--world` names.

    Args:
        world: the run of a fit; or a model that is asked in words and remembers with the store of
            the settings: `llm` (the server of `[llm]`), `smollm2`, or a model folder.
        config: the settings.
        llm: who answers where the world is `llm`; by default it is opened, without a run's cache.
    """
    speaker = _instructed(world, config, llm)
    if speaker is None:
        store = Path(config.replay.store) if config.replay.store else None
        return open_dream(Path(world), store=store, config=config.dream)
    path = store_path(config.replay)
    card = card_for(path, config.env.spec, config.dream, embedder=config.replay.embedder)
    return dream_over(speaker, card, config=config.dream)


def _instructed(world: str, config: RunConfig, llm: LLM | None) -> LLM | None:
    """Return a model that was not fitted to dream, or None where the world is a fitted dream."""
    if _is_fitted(world):
        return None
    # Before anything is loaded, which may take a while.
    store_path(config.replay)
    if world == SERVER:
        return llm or build.make_llm(config.llm)
    folder = _weights_folder(world)
    return _local(folder, name=SMOLLM2 if world == SMOLLM2 else folder.name)


def _is_fitted(world: str) -> bool:
    """Return whether a world is to be the run of a fit, and no model that is asked in words."""
    folder = Path(world)
    plain = (folder / "config.json").is_file() and not (folder / CARD).is_file()
    return not plain and world not in (SERVER, SMOLLM2)


def _weights_folder(world: str) -> Path:
    if world == SMOLLM2:
        from dreamgym.models.smollm2 import smollm2_folder

        return smollm2_folder()
    return Path(world) / MODEL if _is_fitted(world) else Path(world)


def weights_of(world: str) -> str | None:
    """Name the weights that a world is dreamt with; None where they are not here."""
    if world == SERVER:
        return None
    folder = _weights_folder(world)
    return build.weights_digest(folder) if folder.is_dir() else None


def memory_of(world: str, config: RunConfig) -> Path:
    """Return the store that the dream which `--world` names would remember with."""
    if _is_fitted(world) and not config.replay.store:
        return Path(load_card(Path(world)).store)
    return store_path(config.replay)


def count_remembered(stats: Iterable[GroupStats], env: str) -> int:
    """Return how many transitions there are for a dream of an environment to look up."""
    return sum(group.transitions for group in stats if group.env == env)


def _fitted(folder: Path, card: DreamCard, config: DreamConfig, *, name: str) -> LLM:
    llm = _local(folder / MODEL, name=name)
    if config.confidence_of == "reply" or card.style is not Style.COMPACT:
        return llm
    return FlagsOnly(llm, frozenset(n for mark in FLAGS for n in llm.tokenizer.encode(mark)))


def _local(folder: Path, *, name: str) -> LocalLLM:
    from dreamgym.models.as_llm import LocalLLM
    from dreamgym.models.load import load_model, load_tokenizer

    return LocalLLM(load_model(folder), load_tokenizer(folder), name=name)


def _speaker(llm: LLM, card: DreamCard, config: DreamConfig) -> ExperienceModel:
    return ExperienceModel(
        llm,
        style=card.style,
        switches=card.switches,
        max_tokens=config.longest_answer or LONGEST_ANSWER[card.style],
        temperature=config.temperature,
        jobs=card.jobs,
        goals=card.known.goals,
        vary_goals=card.vary_goals,
    )


def _second(config: DreamConfig, *, env: str) -> SecondOpinion | None:
    """Open the model of the dream that must agree; its memory and rules are not used."""
    if not config.second:
        return None
    folder = Path(config.second)
    card = load_card(folder)
    if card.env != env:
        raise ConfigError(f"dream.second {folder} dreams {card.env}, not {env}")
    llm = _fitted(folder, card, config, name=f"{folder.name}, second")
    model = _speaker(llm, card, config)
    return SecondOpinion(model, states=config.agree_on == "states")


def card_for(store: Path, env: str, config: DreamConfig, *, embedder: str = "hashing") -> DreamCard:
    """Return the card of a dream over an instruct model that was not fitted."""
    with build.make_store(store, ReplayConfig(embedder=embedder)) as opened:
        env = only_env(opened, wanted=env)
        real = opened.trajectories(source=Source.REAL, split=Split.TRAIN, env=env)
        known = KnownKinds.from_transitions(one for each in real for one in each.transitions())
    style, switches = Style.FULL, switches_of(config)
    return DreamCard(
        env, str(store), embedder, style, switches, config.references, known, jobs=tuple(Job)
    )


def switches_of(config: DreamConfig) -> Switches:
    """Return what a model gets to see and must say under these settings."""
    return Switches(
        history=config.history,
        reasoning=config.reasoning,
        references=config.references > 0,
        window=config.window,
        rewards=not config.outcome_only,
        placeholders=config.placeholders,
        hints=config.hints,
    )


def store_path(config: ReplayConfig) -> Path:
    """Return where the store lies that a job learns from."""
    path = Path(config.store)
    if not config.store or not path.is_file():
        where = f"there is none at {path}" if config.store else "none was named"
        raise ConfigError(f"an experience store is needed, {where}: give --store")
    return path


def only_env(store: ExperienceStore, *, wanted: str) -> str:
    """Return the environment of a store: the wanted one, or the only one where none was named."""
    known = sorted({group.env for group in store.stats()})
    if not known:
        raise ConfigError(f"{store.path} holds nothing: record some with `dreamgym collect`")
    name = str(parse_spec(wanted))
    if name in known:
        return name
    if len(known) == 1 and wanted == EnvConfig().spec:
        return known[0]
    raise ConfigError(f"{store.path} holds {', '.join(known)}; choose one with --env")


def recorded_openings(store: ExperienceStore, env: str) -> dict[str, Opening]:
    """Return how the recorded tasks of an environment open."""
    real = store.trajectories(source=Source.REAL, env=env)
    return {one.task.id: Opening(one.task, one.opening) for one in real}


def named_task(tasks: Iterable[Task], wanted: str, *, where: str) -> Task:
    """Return the task of that id; where there is none, say which come near."""
    by_id = {task.id: task for task in tasks}
    if wanted not in by_id:
        near = difflib.get_close_matches(wanted, by_id, n=5, cutoff=0.3) or sorted(by_id)[:5]
        raise ConfigError(f"{where} has no task '{wanted}'.{did_you_mean(wanted, near)}")
    return by_id[wanted]


def _known_openings(store: ExperienceStore, env: str, others: Openings | None) -> Openings:
    """Return openings from the record, read when first asked for, else from `others`."""
    known: dict[str, Opening] = {}

    async def opening(task: Task) -> Opening:
        if not known:
            known.update(recorded_openings(store, env))
        if task.id in known:
            return known[task.id]
        if others is None:
            raise EnvError(f"nobody has recorded how {task.id} opens: collect an episode of it")
        return await others(task)

    return opening


__all__ = [
    "Dream",
    "card_for",
    "count_remembered",
    "dream_over",
    "memory_of",
    "named_task",
    "only_env",
    "open_dream",
    "open_named",
    "recorded_openings",
    "store_path",
    "weights_of",
]
