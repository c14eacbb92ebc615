"""Any Hugging Face model learns by the same updates, whole or by adapters."""

from __future__ import annotations

import copy

import pytest
import torch
from small_policy import VOCABULARY, play, tasks

from dreamgym.models.hf import HfModel, Lora
from dreamgym.models.requirement import load
from dreamgym.train.algorithms import Ppo
from dreamgym.train.critic import make_critic
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.update import Learner, UpdatePlan

pytest.importorskip("transformers")

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def qwen(lora: Lora | None = None) -> HfModel:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("qwen2", **SIZES, layer_types=["full_attention"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inner = AutoModelForCausalLM.from_config(config)
        for weight in inner.parameters():
            torch.nn.init.normal_(weight.data, 0, 0.3)
        if lora is not None:
            peft = load("peft", extra="lora")
            config = peft.LoraConfig(
                r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout,
                target_modules="all-linear", task_type="CAUSAL_LM",
            )  # fmt: skip
            inner = peft.get_peft_model(inner, config)
    return HfModel(inner)


def step(model):
    model.train(False)
    groups = play(model, tasks(8, 1), members=4, seed=1)
    learner = Learner(
        model,
        UpdatePlan(epochs=3, learning_rate=1e-2),
        critic=make_critic(model),
        reference=copy.deepcopy(model),
    )
    credit = Ppo().credit(groups, learner.values(groups))
    return learner, learner.improve(credit, PolicyObjective(kl_coefficient=0.01), step=0)


def test_a_model_of_another_architecture_learns():
    learner, figures = step(qwen())
    assert figures["actor/mismatch_kl"] == pytest.approx(0, abs=1e-8)
    assert figures["actor/kl"] > 1e-4
    assert figures["actor/updates"] == 3
    assert "model/policy.inner.model.embed_tokens.weight" in learner.tensors()


def test_only_adapters_learn_and_their_dropout_is_off():
    pytest.importorskip("peft")
    model = qwen(Lora(rank=4, alpha=8, dropout=0.5))
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    learner, figures = step(model)
    changed = {
        name for name, weight in model.named_parameters() if not torch.equal(before[name], weight)
    }
    assert changed
    assert all("lora" in name for name in changed)
    assert figures["actor/mismatch_kl"] == pytest.approx(0, abs=1e-8)
    kept = {name for name in learner.tensors() if name.startswith("model/policy.")}
    assert len(kept) == sum("lora" in name for name in before), "checkpoints hold what learns"
