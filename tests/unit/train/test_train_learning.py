"""Every algorithm learns: a policy of a few thousand weights, from chance to nearly perfect."""

from __future__ import annotations

import copy

import pytest
from small_policy import demonstrate, mean_reward, play, small_llama, tasks

from dreamgym.train.algorithms import Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.critic import make_critic
from dreamgym.train.losses import Clip
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.tokens import TokenGroup
from dreamgym.train.update import Learner, UpdatePlan, preference_pairs
from dreamgym.types import derive_seed

ARMS = {
    "grpo": (Grpo(), PolicyObjective()),
    "dr. grpo": (
        Grpo(scale=False),
        PolicyObjective(aggregation="seq-mean-token-sum-norm", horizon=2),
    ),
    "grpo, clip-higher, kl, penalty": (
        Grpo(invalid_penalty=0.1),
        PolicyObjective(clip=Clip(0.2, 0.28), kl_coefficient=0.01, entropy_coefficient=0.001),
    ),
    "rloo": (Rloo(), PolicyObjective()),
    "gigpo": (Gigpo(), PolicyObjective()),
    "ppo": (Ppo(), PolicyObjective()),
}


def score(model) -> float:
    return mean_reward(play(model, tasks(40, seed=-1), members=2, seed=-1))


@pytest.mark.parametrize(("algorithm", "objective"), ARMS.values(), ids=ARMS.keys())
def test_an_algorithm_learns(algorithm, objective):
    model = small_llama(1)
    plan = UpdatePlan(epochs=2, minibatches=2, learning_rate=3e-3)
    learner = Learner(
        model,
        plan,
        critic=make_critic(model) if algorithm.needs_values else None,
        reference=copy.deepcopy(model) if objective.kl_coefficient else None,
    )
    before = score(model)
    for step in range(12):
        asked = tasks(12, seed=derive_seed("tasks", step))
        groups = play(model, asked, members=8, seed=derive_seed("play", step))
        values = learner.values(groups) if algorithm.needs_values else None
        learner.improve(algorithm.credit(groups, values), objective, step=step)
    assert before < 0.3
    assert score(model) > 0.7


def test_failed_rewards_of_a_group_teach_nothing_wrong():
    """Half of all episodes break; what is learnt is learnt from the others."""
    model = small_llama(1)
    learner = Learner(model, UpdatePlan(epochs=2, minibatches=2, learning_rate=3e-3))
    broken = type(demonstrate(tasks(1, 0))[0])((), (), failed=True)
    for step in range(14):
        groups = play(model, tasks(12, seed=step), members=8, seed=derive_seed("play", step))
        halves = [
            TokenGroup(g.task, tuple(broken if n % 2 else e for n, e in enumerate(g.episodes)))
            for g in groups
        ]
        figures = learner.improve(Grpo().credit(halves), PolicyObjective(), step=step)
        assert figures["credit/failed_episodes"] == 48
    assert score(model) > 0.7


def test_demonstrations_teach():
    model = small_llama(1)
    learner = Learner(model, UpdatePlan(minibatches=4, epochs=4, learning_rate=1e-2))
    for step in range(4):
        learner.clone(demonstrate(tasks(40, seed=step)), step=step)
    assert score(model) > 0.9


def test_preferences_teach():
    model = small_llama(1)
    learner = Learner(
        model, UpdatePlan(minibatches=4, learning_rate=3e-3), reference=copy.deepcopy(model)
    )
    before = score(model)
    for step in range(12):
        groups = play(model, tasks(24, seed=step), members=8, seed=derive_seed("play", step))
        learner.prefer(preference_pairs(groups), step=step)
    assert score(model) > before + 0.3
