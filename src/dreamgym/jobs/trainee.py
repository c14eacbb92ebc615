"""Who learns by trial: the policy to start from, its learner and its algorithm."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

from dreamgym import build
from dreamgym.agents.behaviour import Behaviour
from dreamgym.agents.policy_card import CARD, PolicyCard, load_policy_card, read_changes
from dreamgym.agents.policy_prompt import Format
from dreamgym.config import RunConfig
from dreamgym.errors import ConfigError
from dreamgym.jobs.train import lora_of, make_card
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.checkpoint import load_checkpoint
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.requirement import torch
from dreamgym.models.smollm2 import SMOLLM2
from dreamgym.train.algorithms import Algorithm, Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.critic import make_critic
from dreamgym.train.loop import Trainee
from dreamgym.train.losses import Clip
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.policy_fit import PolicyModel, policy_folder
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import derive_seed, digest

CHECKPOINTS = "checkpoints"
"""The folder, inside a run, of what it goes on from."""


def load_start(config: RunConfig) -> tuple[PolicyModel, PolicyCard]:
    """Load the policy to start from, and its card with the temperature to practise at.

    A model that was never taught our prompts has no card; instruct models need none to speak.
    """
    name, _, changes = config.policy.model.partition("?")
    folder = policy_folder(name)
    if folder is None:
        raise ConfigError(
            f"learning by trial starts from a policy that can speak; '{config.policy.model}' is "
            "none: make one with `dreamgym train --algo sft` and give its run with --from, or take "
            f"an instruct model, such as --from {SMOLLM2}"
        )
    policy = PolicyModel(load_model(folder, lora=lora_of(config)), load_tokenizer(folder))
    if (folder / CARD).is_file() or policy.format is Format.COMPACT:
        card = load_policy_card(folder)
    else:
        card = make_card(config, policy, config.env.spec)
    card = replace(card, **read_changes(changes))
    return policy, replace(card, temperature=config.rl.temperature)


def make_trainee(
    config: RunConfig, policy: PolicyModel, card: PolicyCard, llm: LocalLLM
) -> Trainee:
    """Return the policy with what changes its weights, as the settings say."""
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
    if wanted.continued:
        go_on(learner, Path(config.policy.model.partition("?")[0]))
    # Part of the names of its episodes: those of another training are others, whatever the seeds.
    told_apart = digest(f"{config.policy.model}|{config.train.algo}|{config.rl}|{config.seed}")
    behaviour = Behaviour("policy", build.make_model_agents(llm, card), settings=told_apart)
    return Trainee(behaviour, build.make_writer(llm, card), learner, algorithm, objective)


def go_on(learner: Learner, run: Path) -> None:
    """Take over the optimiser, and the critic, that another run ended with."""
    found = load_checkpoint(run / CHECKPOINTS)
    if found is None:
        raise ConfigError(
            f"rl.continued goes on with the optimiser that {run} ended with, but there is no "
            "checkpoint of it: name the folder of a run that learnt by trial with --from"
        )
    now, then = (
        {name: one for name, one in tensors.items() if name.startswith("model/")}
        for tensors in (learner.tensors(), found.tensors)
    )
    if now.keys() != then.keys():
        raise ConfigError(
            f"rl.continued: {run} learnt by another algorithm. Go on from it with a new optimiser "
            "(--set rl.continued=false)"
        )
    if any(not torch.equal(now[name], then[name]) for name in now if "/policy." in name):
        raise ConfigError(
            f"rl.continued: the policy of {run} is not the one of its last checkpoint. Go on from "
            "it with a new optimiser (--set rl.continued=false)"
        )
    learner.load_tensors(found.tensors)


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
