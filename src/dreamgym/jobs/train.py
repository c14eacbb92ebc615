"""The train job: demonstrations become a policy in the run's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym import __version__, build, dreams
from dreamgym.agents.marks import Marks
from dreamgym.agents.policy_card import POLICY, Choose, PolicyCard
from dreamgym.agents.policy_prompt import Format
from dreamgym.config import RunConfig
from dreamgym.config.train import PolicyConfig
from dreamgym.experience.affordances import Affordances, learn_affordances
from dreamgym.models.hf import Lora
from dreamgym.models.sft_plan import SftPlan, SftProgress, SftResult
from dreamgym.runs import RunDir
from dreamgym.train.demonstrations import (
    SPANS,
    Retelling,
    choose_demonstrations,
    policy_texts,
)
from dreamgym.train.policy_fit import PolicyModel, clone, make_policy_model, split_demonstrations
from dreamgym.train.renaming import Names, find_names
from dreamgym.types import Source, Split, Trajectory, derive_seed


@dataclass(frozen=True, slots=True)
class Cloned:
    """What behaviour cloning left behind."""

    folder: Path
    env: str
    parameters: int
    vocabulary: int
    demonstrations: tuple[str, ...]
    """Ids of all that were used, the held-out ones among them."""
    held_out: int
    actions: int
    """Demonstrated actions, in what was learnt and what was held out."""
    recorded: int
    """Real transitions of the whole record: its words, names and gaps between actions are known."""
    names: Names
    card: PolicyCard
    result: SftResult
    seconds: float


def run_sft(
    config: RunConfig,
    run: RunDir,
    *,
    on_progress: Callable[[SftProgress], None] = lambda progress: None,
) -> Cloned:
    """Clone the behaviour that the store demonstrates."""
    started, wanted = time.monotonic(), config.train
    env, recorded = read_recorded(config)
    demos = choose_demonstrations(
        recorded, behaviour=wanted.behaviour, count=wanted.demos, seed=config.seed
    )
    policy = make_policy_model(
        config.policy.model,
        lambda: _texts(config.policy, recorded, demos),
        vocabulary=config.policy.vocabulary,
        seed=config.seed,
        lora=lora_of(config),
    )
    run.begin()
    names = find_names(recorded)
    card = make_card(
        config, policy, env, learn_affordances(demos, names.classes, recorded=recorded)
    )
    learnt, held = split_demonstrations(demos, share=wanted.held_out_share, seed=config.seed)

    def note(progress: SftProgress) -> None:
        _note(run, progress)
        on_progress(progress)

    result = clone(
        policy,
        Retelling(learnt, names, share=wanted.renaming, seed=config.seed),
        Retelling(held, names, share=wanted.renaming, seed=config.seed),
        card=card,
        plan=_plan(config),
        folder=run.path / "checkpoints",
        threads=wanted.threads or os.cpu_count() or 1,
        on_progress=note,
    )
    cloned = Cloned(
        folder=save_policy(run.path / POLICY, policy, card),
        env=env,
        parameters=sum(weight.numel() for weight in policy.model.parameters()),
        vocabulary=policy.tokenizer.vocab_size,
        demonstrations=tuple(one.id for one in demos),
        held_out=len(held),
        actions=sum(len(one.steps) for one in demos),
        recorded=sum(len(one.steps) for one in recorded),
        names=names,
        card=card,
        result=result,
        seconds=time.monotonic() - started,
    )
    run.result(result_of(config, cloned))
    run.event("finished", steps=result.steps)
    return cloned


def _texts(wanted: PolicyConfig, recorded: list[Trajectory], demos: list[Trajectory]) -> list[str]:
    marks = Marks(
        seen=wanted.mark_seen,
        goal=wanted.mark_goal,
        actions=wanted.mark_actions,
        tried=wanted.mark_tried,
    )
    return list(policy_texts(recorded, demos, list_actions=wanted.list_actions, marks=marks))


def read_recorded(config: RunConfig) -> tuple[str, list[Trajectory]]:
    """Return the environment of the store, and its real episodes of the train split."""
    with build.make_store(dreams.store_path(config.replay), config.replay) as store:
        env = dreams.only_env(store, wanted=config.env.spec)
        return env, list(store.trajectories(source=Source.REAL, split=Split.TRAIN, env=env))


def lora_of(config: RunConfig) -> Lora | None:
    """Return the adapters that are wanted, if any are."""
    wanted, seed = config.train, derive_seed(config.seed, "adapters")
    return Lora(wanted.lora_rank, wanted.lora_alpha, seed=seed) if wanted.lora_rank else None


def make_card(
    config: RunConfig, policy: PolicyModel, env: str, known: Affordances | None = None
) -> PolicyCard:
    """Return the card of a policy as the settings want it."""
    wanted = config.policy
    return PolicyCard(
        env=env,
        format=policy.format if wanted.format == "auto" else Format(wanted.format),
        window=wanted.window,
        list_actions=wanted.list_actions,
        mark_seen=wanted.mark_seen,
        mark_goal=wanted.mark_goal,
        mark_actions=wanted.mark_actions,
        mark_tried=wanted.mark_tried,
        think=wanted.think,
        longest_action=wanted.longest_action,
        temperature=wanted.temperature,
        choose=Choose(wanted.choose),
        knows=asdict(known) if known else {},
    )


def save_policy(folder: Path, policy: PolicyModel, card: PolicyCard) -> Path:
    """Write weights, vocabulary and card; the card last, because it makes the folder a policy."""
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.save(folder)
    policy.tokenizer.save(folder)
    card.save(folder)
    return folder


def _plan(config: RunConfig) -> SftPlan:
    wanted = config.train
    return SftPlan(
        spans=SPANS,
        steps=wanted.steps,
        tokens_per_step=wanted.tokens_per_step,
        learning_rate=wanted.learning_rate,
        warmup_steps=wanted.warmup_steps,
        eval_every=wanted.eval_every,
        checkpoint_every=wanted.eval_every,
        patience=wanted.patience or None,
        seed=config.seed,
    )


def _note(run: RunDir, progress: SftProgress) -> None:
    values = {
        "sft/loss": progress.loss,
        "sft/learning_rate": progress.learning_rate,
        "sft/tokens_per_second": progress.tokens_per_second,
    }
    if progress.held_out is not None:
        values["sft/held_out"] = progress.held_out.loss
        values["sft/held_out_exact"] = progress.held_out.spans["action"].exact
    run.metrics(progress.step, values)


def result_of(config: RunConfig, cloned: Cloned) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    result = cloned.result
    return {
        "command": "train",
        "algo": config.train.algo,
        "env": cloned.env,
        "seed": config.seed,
        "version": __version__,
        "policy": str(cloned.folder),
        "model": config.policy.model,
        "card": asdict(cloned.card),
        "parameters": cloned.parameters,
        "vocabulary": cloned.vocabulary,
        "behaviour": config.train.behaviour,
        "demonstrations": len(cloned.demonstrations),
        "demonstration_ids": list(cloned.demonstrations),
        "held_out_demonstrations": cloned.held_out,
        "demonstrated_actions": cloned.actions,
        "real_transitions": {"offline": cloned.recorded, "online": 0},
        "names": [list(group) for group in cloned.names.classes],
        "steps": result.steps,
        "best_step": result.best_step,
        "stopped_early": result.stopped_early,
        "tokens": result.tokens,
        "held_out": [asdict(point) for point in result.curve],
        "seconds": round(cloned.seconds, 1),
        "training_seconds": round(result.seconds, 1),
    }
