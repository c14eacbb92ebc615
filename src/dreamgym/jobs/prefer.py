"""The train job for preferences: recorded won and lost episodes turn a policy into a better one."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym import __version__
from dreamgym.agents.policy_card import POLICY, load_policy_card, model_folder
from dreamgym.config import RunConfig
from dreamgym.errors import ConfigError
from dreamgym.jobs.train import read_recorded, save_policy
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.requirement import torch
from dreamgym.runs import RunDir, read_json_lines
from dreamgym.train.policy_fit import PolicyModel
from dreamgym.train.preferences import (
    Figures,
    PreferencePlan,
    find_pairs,
    judge_pairs,
    learn_preferences,
    split_pairs,
    token_pairs,
)
from dreamgym.train.update import Learner, UpdatePlan

OnRow = Callable[[int, Figures], None]


@dataclass(frozen=True, slots=True)
class Preferred:
    """What learning from preferences left behind."""

    folder: Path
    env: str
    pairs: int
    held_out: int
    """Pairs of tasks that were kept back."""
    tasks: int
    transitions: int
    """Real steps of all episodes that the pairs are made of."""
    curve: tuple[tuple[int, Figures], ...]
    """What each look at the held-out pairs found."""
    seconds: float


def run_dpo(
    config: RunConfig, run: RunDir, *, on_row: OnRow = lambda step, figures: None
) -> Preferred:
    """Learn from the won and lost episodes of the store."""
    started, wanted = time.monotonic(), config.dpo
    folder = model_folder(Path(config.policy.model))
    if folder is None:
        raise ConfigError(
            f"preferences start from a policy that can speak; '{config.policy.model}' is none: "
            "make one with `dreamgym train --algo sft` and give its run with --from"
        )
    card = load_policy_card(folder)
    env, recorded = read_recorded(config)
    if env != card.env:
        raise ConfigError(f"the store holds {env}, but the policy in {folder} plays {card.env}")
    pairs = find_pairs(recorded, count=wanted.pairs, seed=config.seed)
    learnt, held = split_pairs(pairs, share=wanted.held_out_share, seed=config.seed)
    policy = PolicyModel(load_model(folder), load_tokenizer(folder))
    start = PolicyModel(copy.deepcopy(policy.model), policy.tokenizer)
    torch.set_num_threads(wanted.threads or os.cpu_count() or 1)
    plan = plan_of(config)
    run.begin()
    kept_back = token_pairs(held, policy, card)

    def row(step: int, figures: Figures) -> None:
        run.metrics(step, figures)
        on_row(step, figures)

    learn_preferences(
        Learner(
            policy.model,
            UpdatePlan(tokens_per_pass=wanted.tokens_per_pass, seed=config.seed),
            reference=start.model,
        ),
        token_pairs(learnt, policy, card),
        plan,
        look=lambda: judge_pairs(policy, start, kept_back, plan),
        folder=run.path / "checkpoints",
        on_row=row,
    )
    episodes = {one.id: len(one.steps) for pair in pairs for one in pair}
    done = Preferred(
        folder=save_policy(run.path / POLICY, policy, card),
        env=env,
        pairs=len(learnt),
        held_out=len(held),
        tasks=len({won.task.id for won, _ in pairs}),
        transitions=sum(episodes.values()),
        curve=run_curve(run),
        seconds=time.monotonic() - started,
    )
    run.result(result_of(config, done))
    run.event("finished", steps=wanted.steps)
    return done


def plan_of(config: RunConfig) -> PreferencePlan:
    """Return how long, and in what portions."""
    wanted = config.dpo
    return PreferencePlan(
        wanted.steps,
        pairs_per_step=wanted.pairs_per_step,
        beta=wanted.beta,
        learning_rate=wanted.learning_rate,
        warmup_steps=wanted.warmup_steps,
        look_every=wanted.eval_every,
        tokens_per_pass=wanted.tokens_per_pass,
        seed=config.seed,
    )


def run_curve(run: RunDir) -> tuple[tuple[int, Figures], ...]:
    """Return the held-out figures of a run; of a step that was made again, the later ones."""
    found: dict[int, Figures] = {}
    for record in read_json_lines(run.path / "metrics.jsonl"):
        figures = {name: value for name, value in record.items() if "/held_out_" in name}
        if figures:
            found[record["step"]] = figures
    return tuple(sorted(found.items()))


def result_of(config: RunConfig, done: Preferred) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    return {
        "command": "train",
        "algo": config.train.algo,
        "env": done.env,
        "seed": config.seed,
        "version": __version__,
        "start": config.policy.model,
        "policy": str(done.folder),
        "steps": config.dpo.steps,
        "pairs": done.pairs,
        "held_out_pairs": done.held_out,
        "tasks": done.tasks,
        "real_transitions": {"offline": done.transitions, "online": 0},
        "held_out": [{"step": step, **figures} for step, figures in done.curve],
        "settings": asdict(config.dpo),
        "seconds": round(done.seconds, 1),
    }
