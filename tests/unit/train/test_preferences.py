"""Preferences: which recorded episodes are paired, and what learning from them does."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from small_policy import small_llama

from dreamgym.agents import make_behaviour
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.errors import ConfigError
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.testing import CorridorWorld
from dreamgym.train.demonstrations import policy_texts
from dreamgym.train.policy_fit import PolicyModel, make_policy_model
from dreamgym.train.preferences import (
    PreferencePlan,
    batch_of,
    find_pairs,
    judge_pairs,
    learn_preferences,
    split_pairs,
    token_pairs,
)
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import Action, SampledTokens, Source, Split

CARD = PolicyCard("corridor", longest_action=6)


def played(behaviour, *, max_steps, seed=0, tasks=6):
    slots = plan_slots(
        CorridorWorld().tasks(Split.TRAIN, tasks), episodes=tasks, max_steps=max_steps, seed=seed,
        behaviour=make_behaviour(behaviour),
        answerer=Answerer(Source.REAL, "corridor 1", "plain"),
    )  # fmt: skip

    async def run():
        return [one async for one in collect(slots, CorridorWorld(), concurrency=16)]

    return asyncio.run(run())


@pytest.fixture(scope="module")
def recorded():
    """Every task won once by an expert and lost twice by someone who gave up after two steps."""
    return [
        *played("expert", max_steps=12),
        *(one for seed in (1, 2) for one in played("random", max_steps=2, seed=seed)
          if not one.success),
    ]  # fmt: skip


def test_every_lost_episode_is_beside_the_best_won_one_of_its_task(recorded):
    lost = [one for one in recorded if not one.success]
    pairs = find_pairs(recorded, count=0, seed=0)
    assert sorted(worse.id for _, worse in pairs) == sorted(one.id for one in lost)
    assert all(better.success and not worse.success for better, worse in pairs)
    assert all(better.task.id == worse.task.id for better, worse in pairs)
    won = next(one for one in recorded if one.success)
    clumsy = replace(won, id="clumsy", steps=(won.steps[0], *won.steps))
    again = find_pairs([clumsy, *recorded], count=0, seed=0)
    assert "clumsy" not in {better.id for better, _ in again}


def test_dreamed_and_held_out_episodes_are_not_paired(recorded):
    dreamed = [
        replace(one, provenance=replace(one.provenance, source=Source.DREAM)) for one in recorded
    ]
    with pytest.raises(ConfigError, match="0 tasks won, 0 episodes lost"):
        find_pairs(dreamed, count=0, seed=0)


def test_too_few_pairs_are_told(recorded):
    assert len(find_pairs(recorded, count=3, seed=0)) == 3
    with pytest.raises(ConfigError, match=r"99 pairs .* are wanted, the store has"):
        find_pairs(recorded, count=99, seed=0)


def test_no_task_is_learnt_and_held_out(recorded):
    pairs = find_pairs(recorded, count=0, seed=0)
    learnt, held = split_pairs(pairs, share=0.4, seed=0)
    assert held
    assert len(learnt) + len(held) == len(pairs)
    assert not {one.task.id for one, _ in learnt} & {one.task.id for one, _ in held}


def test_an_epoch_goes_through_all_pairs():
    pairs = list(range(7))
    seen = Counter(pair for step in range(7) for pair in batch_of(pairs, step, size=3, seed=0))
    assert set(seen.values()) == {3}
    assert batch_of(pairs, 5, size=3, seed=0) == batch_of(pairs, 5, size=3, seed=0)
    for step in range(4):
        assert sorted(batch_of(pairs, step, size=9, seed=0)) == pairs, "all of them, each once"


def test_tokens_of_another_policy_are_not_taken_for_ours(recorded):
    policy = small(recorded)
    won, lost = find_pairs(recorded, count=1, seed=0)[0]
    strange = Action(won.steps[0].action.text, SampledTokens((9, 9), (-1.0, -1.0)))
    spoken = replace(won, steps=(replace(won.steps[0], action=strange), *won.steps[1:]))
    assert token_pairs([(spoken, lost)], policy, CARD) == token_pairs([(won, lost)], policy, CARD)


def small(recorded):
    """A policy with the vocabulary of the record and very few weights."""
    made = make_policy_model(
        "1m",
        lambda: list(policy_texts(recorded, recorded, list_actions=False)),
        vocabulary=400,
        seed=0,
    )
    model = small_llama(vocab_size=made.tokenizer.vocab_size, positions=512)
    return PolicyModel(model, made.tokenizer)


def test_pairs_are_told_apart_and_a_killed_run_goes_on_to_the_same_weights(recorded, tmp_path):
    pairs = find_pairs(recorded, count=0, seed=0)
    plan = PreferencePlan(6, pairs_per_step=4, learning_rate=3e-3, look_every=2)

    def learn(plan, folder):
        policy, start = small(recorded), small(recorded)
        told = token_pairs(pairs, policy, CARD)
        learner = Learner(policy.model, UpdatePlan(), reference=start.model)
        rows = []
        learn_preferences(
            learner,
            told,
            plan,
            look=lambda: judge_pairs(policy, start, told, plan),
            folder=folder,
            on_row=lambda step, figures: rows.append((step, figures)),
        )
        return rows, learner.tensors()

    rows, weights = learn(plan, tmp_path / "whole")
    assert [step for step, _ in rows] == list(range(7))
    looks = {step: row for step, row in rows if "dpo/held_out_margin" in row}
    assert list(looks) == [0, 2, 4, 6]
    assert looks[0]["dpo/held_out_margin"] == pytest.approx(0.0, abs=1e-6)
    assert looks[6]["dpo/held_out_accuracy"] == 1.0
    assert looks[6]["dpo/held_out_margin"] > looks[2]["dpo/held_out_margin"] > 0

    learn(replace(plan, steps=2), tmp_path / "killed")
    more, same = learn(plan, tmp_path / "killed")
    assert [step for step, _ in more] == [3, 4, 5, 6]
    assert all((weights[name] == same[name]).all() for name in weights)
