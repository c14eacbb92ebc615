"""Behaviour cloning: a policy learns to do what demonstrations did (the paper's SFT baseline).

Also the warm start of reinforcement learning: a policy that speaks well and decides weakly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dreamgym.agents.policy_card import PolicyCard, model_folder
from dreamgym.agents.policy_prompt import MARKS, Format
from dreamgym.errors import ConfigError
from dreamgym.models.causal import CausalLM
from dreamgym.models.hf import Lora
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.requirement import torch
from dreamgym.models.samples import Sample
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan, SftProgress, SftResult
from dreamgym.models.smollm2 import SMOLLM2, smollm2_folder
from dreamgym.models.tiny import PRESETS, make_tiny
from dreamgym.models.tokenizer import END, Tokenizer, train_word_tokenizer
from dreamgym.train.demonstrations import Retelling, episode_samples
from dreamgym.types import Trajectory, derive_seed

HELD_OUT_TELLINGS = 8
"""Times that each held-out demonstration is told, each time under other names: few demonstrations
make a noisy curve."""


@dataclass(frozen=True, slots=True)
class PolicyModel:
    """A policy's weights and how it spells."""

    model: CausalLM
    tokenizer: Tokenizer

    @property
    def format(self) -> Format:
        """The format that suits it: compact where the marks are tokens of its vocabulary."""
        ours = all(len(self.tokenizer.encode(mark)) == 1 for mark in MARKS)
        return Format.COMPACT if ours else Format.CONVERSATION


def make_policy_model(
    name: str,
    texts: Callable[[], Sequence[str]],
    *,
    vocabulary: int,
    seed: int,
    lora: Lora | None = None,
) -> PolicyModel:
    """Make a small model with a vocabulary of these texts, or load a model folder.

    Args:
        name: a preset, `smollm2`, a model folder, or the run of a `dreamgym fit` or `train`.
        texts: gives what a vocabulary has to spell; only asked for a model from scratch.
        vocabulary: its most entries.
        seed: of the first weights.
        lora: train adapters beside the weights of a model that is loaded.
    """
    if name in PRESETS and lora is None:
        special = [mark for mark in MARKS if mark != END]
        tokenizer = train_word_tokenizer(texts(), special=special, vocab_size=vocabulary)
        return PolicyModel(make_tiny(name, tokenizer.vocab_size, seed=seed), tokenizer)
    if name in PRESETS:
        raise ConfigError(
            f"policy.model '{name}' is made from scratch: adapters (train.lora_rank) go beside the "
            "weights of a model that has learnt already"
        )
    folder = policy_folder(name)
    if folder is None:
        raise ConfigError(
            f"policy.model '{name}' is neither one of {', '.join([*PRESETS, SMOLLM2])}, nor a "
            "model folder, nor a run of `dreamgym fit` or `dreamgym train`"
        )
    return PolicyModel(load_model(folder, lora=lora), load_tokenizer(folder))


def policy_folder(name: str) -> Path | None:
    """Return the model folder that a name means; that of SmolLM2 is made on the first call."""
    if name == SMOLLM2:
        return smollm2_folder()
    return model_folder(Path(name))


def split_demonstrations(
    demonstrations: Sequence[Trajectory], *, share: float, seed: int
) -> tuple[list[Trajectory], list[Trajectory]]:
    """Return what is learnt and what is held out for the curve; at least one is learnt."""
    held = min(round(share * len(demonstrations)), len(demonstrations) - 1)
    ranked = sorted(demonstrations, key=lambda one: derive_seed(seed, "held out", one.id))
    return ranked[held:], ranked[:held]


def clone(
    policy: PolicyModel,
    told: Retelling,
    held_out: Retelling,
    *,
    card: PolicyCard,
    plan: SftPlan,
    folder: Path | None = None,
    threads: int = 1,
    on_progress: Callable[[SftProgress], None] | None = None,
) -> SftResult:
    """Train the policy in place; checkpoints go to `folder`, and training goes on from there."""
    torch.set_num_threads(threads)

    def samples(trajectories: Sequence[Trajectory]) -> list[Sample]:
        return [
            sample
            for one in trajectories
            for sample in episode_samples(
                one, policy.tokenizer, card=card, positions=policy.model.positions
            )
        ]

    def epoch(number: int) -> list[Sample]:
        return samples(told.epoch(number))

    curve = [held_out.epoch(number) for number in range(HELD_OUT_TELLINGS)]
    return fit(
        policy.model,
        epoch,
        plan=plan,
        held_out=samples([one for telling in curve for one in telling]),
        folder=folder,
        on_progress=on_progress,
    )
