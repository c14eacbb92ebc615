"""An instruct model without a card learns by trial, whole or by adapters, and is saved whole."""

import asyncio
import json

import pytest
import torch

from dreamgym import build
from dreamgym.agents.policy_card import load_policy_card
from dreamgym.agents.policy_prompt import Format
from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.reinforce import loop_plan
from dreamgym.jobs.train import save_policy
from dreamgym.jobs.trainee import load_start, make_trainee
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.load import load_model
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import plan_groups, play_groups
from dreamgym.testing import CorridorWorld
from dreamgym.train.weave import token_groups
from dreamgym.types import Source, Split

pytest.importorskip("transformers")

TEMPLATE = """\
{% for message in messages %}<turn>{{ message.role }}
{{ message.content }}<end>{% endfor %}{% if add_generation_prompt %}<turn>assistant
{% endif %}"""
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 64,
    "max_position_embeddings": 2048,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a model of another architecture than ours, whose tokenizer has a chat template."""
    from transformers import AutoConfig, AutoModelForCausalLM

    path = tmp_path_factory.mktemp("instruct")
    words = train_word_tokenizer(
        ["Room 0 1 2 3 Take the coin in room east west"], special=("<turn>",), vocab_size=300,
        min_count=1,
    )  # fmt: skip
    sizes = {**SIZES, "vocab_size": words.vocab_size, "layer_types": ["full_attention"]}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = AutoConfig.for_model("qwen2", **sizes)
        AutoModelForCausalLM.from_config(config).save_pretrained(path)
    words.save(path)
    settings = path / "tokenizer_config.json"
    plain = {k: v for k, v in json.loads(settings.read_text()).items() if k != "dreamgym"}
    settings.write_text(json.dumps({**plain, "chat_template": TEMPLATE}))
    return path


def settings(folder, *more):
    wanted = [
        f"policy.model={json.dumps(str(folder))}", "policy.longest_action=6", "train.algo='grpo'",
        "policy.list_actions=true", "rl.groups=2", "rl.group_size=4", "rl.max_steps=3",
        "rl.learning_rate=0.001", "env.spec='corridor'",
    ]  # fmt: skip
    return load_config(settings=[*wanted, *more])


def odd_rewards(trajectory):
    """Reward by tokens, so that no two episodes are worth the same."""
    return tuple(sum(step.action.tokens.ids) % 97 / 97 for step in trajectory.steps)


async def practise(config):
    """Play two groups and learn from them; return all that tells about it."""
    policy, card = load_start(config)
    llm = LocalLLM(policy.model, policy.tokenizer, tick_seconds=0.0)
    trainee = make_trainee(config, policy, card, llm)
    world, plan = CorridorWorld(), loop_plan(config).play
    tasks = world.tasks(Split.TRAIN, 4)[2:]
    who = Answerer(Source.REAL, "corridor 1", "m")
    slots = plan_groups(tasks, trainee.behaviour, plan, step=0, answerer=who)
    groups = await play_groups(slots, world, plan)
    await llm.close()
    told = token_groups(groups, trainee.writer, rewards=odd_rewards)
    figures = trainee.learner.improve(trainee.algorithm.credit(told), trainee.objective, step=0)
    return policy, card, groups, told, figures, llm._decoder.read_tokens


@pytest.mark.parametrize("rank", [0, 2])
def test_an_instruct_model_learns_from_what_it_said(folder, tmp_path, rank):
    if rank:
        pytest.importorskip("peft", reason="adapters need the extra `lora`")
    config = settings(folder, f"train.lora_rank={rank}")
    policy, card, groups, told, figures, read = asyncio.run(practise(config))
    assert card.format is Format.CONVERSATION
    episodes = [episode for group in told for episode in group.episodes]
    assert not any(episode.failed for episode in episodes)
    assert [len(episode.sequences) for episode in episodes] == [1] * 8
    sampled = [step.action.tokens for g in groups for one in g.episodes for step in one.steps]
    kept = [p for episode in episodes for p in episode.sequences[0].logprobs]
    assert kept == [p for tokens in sampled for p in tokens.logprobs]
    # Members of a group share their beginning, turns share all that came before them.
    assert read < sum(len(episode.sequences[0].ids) for episode in episodes) / 2
    assert figures["actor/mismatch_kl"] < 1e-6
    assert figures["actor/grad_norm"] > 0
    ids = torch.tensor([episodes[0].sequences[0].ids])
    saved = save_policy(tmp_path, policy, card)
    with torch.no_grad():
        now, again, before = (model(ids) for model in
                              (policy.model, load_model(saved), load_model(folder)))  # fmt: skip
    torch.testing.assert_close(again, now, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(before, now, atol=1e-4, rtol=1e-4)
    assert (saved / "adapters" / "adapter_config.json").is_file() == bool(rank)
    assert load_policy_card(saved) == card
    assert build.make_policy(str(saved))(0).name == f"model:{tmp_path.name}"


def test_a_small_model_without_a_card_has_learnt_nothing_to_say(tmp_path):
    from dreamgym.agents.policy_prompt import MARKS
    from dreamgym.models.tiny import make_tiny

    words = train_word_tokenizer(["a b"], special=MARKS[:-1], vocab_size=300, min_count=1)
    make_tiny("1m", words.vocab_size, seed=0).save(tmp_path)
    words.save(tmp_path)
    with pytest.raises(ConfigError, match=r"holds no policy: there is no policy\.json"):
        load_start(settings(tmp_path))


def test_adapters_are_not_for_models_from_scratch():
    from dreamgym.models.hf import Lora
    from dreamgym.train.policy_fit import make_policy_model

    with pytest.raises(ConfigError, match="made from scratch"):
        make_policy_model("1m", lambda: ["a"], vocabulary=300, seed=0, lora=Lora(2))
