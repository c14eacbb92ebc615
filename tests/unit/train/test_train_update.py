"""The updater: what a step is made of, that passes add up, when it ends early, what it refuses."""

from __future__ import annotations

import copy
import logging
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_episodes import BROKEN, made_episode, made_group
from small_policy import demonstrate, play, small_llama, tasks
from torch.nn import functional

from dreamgym.errors import ConfigError
from dreamgym.models.llama import Llama
from dreamgym.train.algorithms import Credit, Gigpo, Grpo, Ppo
from dreamgym.train.batch import Row, collate
from dreamgym.train.critic import make_critic
from dreamgym.train.losses import Clip
from dreamgym.train.objectives import CloningObjective, PolicyObjective, PreferenceObjective
from dreamgym.train.readout import read_tokens
from dreamgym.train.tokens import TokenGroup, TokenSequence
from dreamgym.train.update import Learner, UpdatePlan, cut, deal, preference_pairs, weighed

SEED = 3
MODES = ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum"]


@pytest.fixture(scope="module")
def groups():
    """Episodes of one and two turns, played by the small policy."""
    return play(small_llama(spread=0.5), tasks(6, SEED), members=4, seed=SEED)


def uneven(groups):
    """Make some episodes shorter, so that lengths and padding differ."""
    found = []
    for number, group in enumerate(groups):
        members = []
        for member, episode in enumerate(group.episodes):
            if (number + member) % 2:
                (s,) = episode.sequences
                first = TokenSequence(s.ids[:3], s.turns[:3], s.logprobs[:1])
                episode = replace(
                    episode,
                    sequences=(first,),
                    rewards=episode.rewards[:1],
                    refused=episode.refused[:1],
                    states=episode.states[:1],
                )
            members.append(episode)
        found.append(TokenGroup(group.task, tuple(members)))
    return found


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in learner.tensors().items() if k.startswith("model/")}


def far(one, other) -> float:
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def learn(groups, *, passes: int, objective=None, algorithm=None, model=None, **plan):
    """Make one update in double precision; return the weights after it and its figures."""
    algorithm = algorithm or Grpo()
    model = (model or small_llama(spread=0.5)).double()
    critic = make_critic(model) if algorithm.needs_values else None
    if critic is not None:
        critic.head.double()
    reference = small_llama(9, spread=0.5).double()
    settings = {"learning_rate": 1e-2, "tokens_per_pass": passes, **plan}
    learner = Learner(model, UpdatePlan(**settings), critic=critic, reference=reference)
    values = learner.values(groups) if algorithm.needs_values else None
    credit = algorithm.credit(groups, values)
    figures = learner.improve(credit, objective or PolicyObjective(), step=0)
    return weights(learner), figures


@pytest.mark.parametrize("algorithm", [Grpo(), Ppo()], ids=["grpo", "ppo"])
@pytest.mark.parametrize("mode", MODES)
def test_an_update_is_the_same_in_however_many_passes(groups, algorithm, mode):
    """Normalised by the minibatch: one token per pass or all at once, it is the same step."""
    objective = PolicyObjective(
        aggregation=mode, kl_coefficient=0.1, entropy_coefficient=0.05, kl_estimator="k2"
    )
    found = [
        learn(
            uneven(groups),
            passes=passes,
            objective=objective,
            algorithm=algorithm,
            epochs=2,
            minibatches=2,
            clip=1e9,
        )
        for passes in (1, 20, 100_000)
    ]
    start = {f"model/policy.{n}": w for n, w in small_llama(spread=0.5).double().named_parameters()}
    moved = max((found[0][0][n] - w).abs().max().item() for n, w in start.items())
    assert moved > 1e-3
    for after, figures in found[1:]:
        assert far(after, found[0][0]) < 1e-9
        for name, value in figures.items():
            assert value == pytest.approx(found[0][1][name], abs=1e-7), name


def test_a_mean_per_pass_would_not_be_the_same(groups):
    """The error that this guards against is real: losses divided by each pass's own tokens."""
    model = small_llama(spread=0.5).double()
    credit = Grpo().credit(uneven(groups))
    objective = PolicyObjective()
    rows = [Row(s) for one in credit.episodes for s in one.episode.sequences]
    rows = [
        replace(
            row,
            columns=replace(
                row.columns, old=np.array(row.sequence.logprobs), advantages=one.advantages
            ),
        )
        for row, one in zip(rows, credit.episodes, strict=True)
    ]

    def gradient(parts):
        model.zero_grad(set_to_none=True)
        for part in parts:
            units = weighed([(row,) for row in part], objective)
            batch = collate([row for unit in units for row in unit], like=torch.zeros(1).double())
            (objective.loss(read_tokens(model, batch), batch).total / len(parts)).backward()
        return torch.cat([w.grad.flatten() for w in model.parameters()])

    half = len(rows) // 3
    assert not torch.allclose(gradient([rows]), gradient([rows[:half], rows[half:]]), rtol=1e-2)


def test_the_order_of_groups_and_members_changes_nothing_but_rounding(groups):
    turned = [replace(g, episodes=g.episodes[::-1]) for g in uneven(groups)][::-1]
    one, other = (learn(of, passes=100_000)[0] for of in (uneven(groups), turned))
    assert far(one, other) < 1e-9


def test_one_step_by_hand(groups):
    """The gradient of the first step is -sum A grad log p / tokens: written out with autograd."""
    model = small_llama(spread=0.5).double()
    credit = Grpo().credit(groups)
    tokens = sum(len(one.advantages) for one in credit.episodes)
    total = torch.zeros((), dtype=torch.float64)
    for one in credit.episodes:
        (sequence,) = one.episode.sequences
        logprobs = torch.log_softmax(model(torch.tensor([sequence.ids]))[0], -1)
        acted = [n for n, turn in enumerate(sequence.turns) if turn >= 0]
        for place, advantage in zip(acted, one.advantages, strict=True):
            total = total - advantage * logprobs[place - 1, sequence.ids[place]] / tokens
    total.backward()
    expected = {name: w.grad.clone() for name, w in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    learner = Learner(model, UpdatePlan(clip=1e9))
    figures = learner.improve(credit, PolicyObjective(), step=0)
    # sampled logprobs are single precision: the ratios are 1 but for that
    for name, weight in model.named_parameters():
        assert torch.allclose(weight.grad, expected[name], atol=1e-6), name
    norm = math.sqrt(sum(float(g.square().sum()) for g in expected.values()))
    assert figures["actor/grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert figures["actor/ratio"] == pytest.approx(1, abs=1e-5)
    assert figures["actor/mismatch_kl"] == pytest.approx(0, abs=1e-9)
    assert figures["actor/clip_frac"] == 0
    mean = sum(one.advantages.sum() for one in credit.episodes) / tokens
    assert figures["actor/pg_loss"] == pytest.approx(-mean, abs=1e-6)


def test_observations_are_never_trained_on(groups):
    """Tokens that nobody saw before an action, such as the last observation, get no gradient."""
    model = small_llama()
    credit = Grpo().credit(groups)
    longer = []
    for one in credit.episodes:
        (s,) = one.episode.sequences
        tail = TokenSequence((*s.ids, 9, 9), (*s.turns, -1, -1), s.logprobs)
        longer.append(replace(one, episode=replace(one.episode, sequences=(tail,))))
    found = []
    for episodes in (credit.episodes, tuple(longer)):
        learner = Learner(copy.deepcopy(model), UpdatePlan(learning_rate=1e-2))
        learner.improve(Credit(episodes, {}), PolicyObjective(), step=0)
        found.append(weights(learner))
    # A slope would move weights by about the rate; Adam magnifies roundings where there is none.
    assert far(*found) < 1e-4


def test_the_temperature_of_the_sampler_is_the_learners(groups):
    """At another temperature the learner would believe to be another policy from the start."""
    credit = Grpo().credit(groups)
    found = {}
    for temperature in (1.0, 0.5):
        learner = Learner(small_llama(spread=0.5), UpdatePlan(temperature=temperature))
        found[temperature] = learner.improve(credit, PolicyObjective(), step=0)["actor/mismatch_kl"]
    assert found[1.0] == pytest.approx(0, abs=1e-9)
    assert found[0.5] > 0.1


def test_recomputed_logprobs_take_the_samplers_place(groups):
    off = [
        replace(
            g,
            episodes=tuple(
                replace(e, sequences=tuple(shifted(s) for s in e.sequences)) for e in g.episodes
            ),
        )
        for g in groups
    ]
    found = {}
    for recompute in (False, True):
        learner = Learner(small_llama(spread=0.5), UpdatePlan(recompute=recompute))
        figures = learner.improve(Grpo().credit(off), PolicyObjective(), step=0)
        found[recompute] = figures["actor/mismatch_kl"]
    assert found[False] > 0.01
    assert found[True] == pytest.approx(0, abs=1e-9)


def shifted(sequence: TokenSequence) -> TokenSequence:
    return replace(sequence, logprobs=tuple(p - 0.3 for p in sequence.logprobs))


class Dropping(Llama):
    """A model with strong dropout."""

    def hidden(self, ids, **places):
        return functional.dropout(super().hidden(ids, **places), 0.5, self.training)


def test_dropout_is_off_while_policies_are_compared(groups):
    steady = small_llama(spread=0.5)
    model = Dropping(steady.shape)
    model.load_state_dict(steady.state_dict())
    learner = Learner(model.train(), UpdatePlan(), reference=steady)
    figures = learner.improve(Grpo().credit(groups), PolicyObjective(), step=0)
    assert figures["actor/mismatch_kl"] == pytest.approx(0, abs=1e-9)
    assert figures["actor/kl"] == pytest.approx(0, abs=1e-9)
    preferred = learner.prefer(preference_pairs(groups), step=0)
    assert abs(preferred["dpo/margin"]) < 0.1
    # Demonstrations are learnt with dropout, which is the same whenever a step is made.
    shown = demonstrate(tasks(8, SEED))
    losses = [learner.clone(shown, step=0, learning_rate=1e-12)["sft/loss"] for _ in range(2)]
    other = learner.clone(shown, step=1, learning_rate=1e-12)["sft/loss"]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert losses[0] != pytest.approx(other, abs=1e-3)
    assert not model.training


def test_an_update_ends_before_the_policy_is_too_far(groups):
    plan = UpdatePlan(epochs=50, learning_rate=5e-3, kl_stop=0.02)
    free = Learner(small_llama(spread=0.5), replace(plan, kl_stop=None))
    held = Learner(small_llama(spread=0.5), plan)
    credit = Grpo().credit(groups)
    unbound = free.improve(credit, PolicyObjective(), step=0)
    stopped = held.improve(credit, PolicyObjective(), step=0)
    assert unbound["actor/updates"] == 50
    assert unbound["actor/kl_stopped"] == 0
    assert 1 <= stopped["actor/updates"] < 50
    assert stopped["actor/kl_stopped"] == 1
    again = Learner(small_llama(spread=0.5), replace(plan, epochs=int(stopped["actor/updates"])))
    assert again.improve(credit, PolicyObjective(), step=0)["actor/kl_stopped"] == 0
    assert far(weights(held), weights(again)) == 0, "the step that was too far is not made"


def test_dual_and_upper_clip_reach_the_update(groups):
    plans = {"narrow": Clip(0.01, 0.01), "wide": Clip(0.9, 9.0)}
    share = {
        name: learn(
            groups,
            passes=9999,
            objective=PolicyObjective(clip=clip),
            epochs=4,
            learning_rate=3e-4,
        )[1]
        for name, clip in plans.items()
    }
    assert share["narrow"]["actor/clip_frac"] > 0.3
    assert share["wide"]["actor/clip_frac"] == 0


def test_the_reference_holds_the_policy_back(groups):
    apart = {}
    for coefficient in (0.0, 5.0):
        model = small_llama(spread=0.5)
        learner = Learner(
            model, UpdatePlan(epochs=30, learning_rate=3e-3), reference=copy.deepcopy(model)
        )
        objective = PolicyObjective(kl_coefficient=coefficient)
        learner.improve(Grpo().credit(groups), objective, step=0)
        figures = learner.improve(Grpo().credit(groups), objective, step=1)
        apart[coefficient] = figures["actor/kl"]
    assert apart[5.0] < apart[0.0] / 3


def test_the_entropy_bonus_keeps_the_policy_open(groups):
    entropy = {}
    for coefficient in (0.0, 0.5):
        learner = Learner(small_llama(spread=0.5), UpdatePlan(epochs=30, learning_rate=3e-3))
        objective = PolicyObjective(entropy_coefficient=coefficient)
        for step in range(2):
            figures = learner.improve(Grpo().credit(groups), objective, step=step)
        entropy[coefficient] = figures["actor/entropy"]
    assert entropy[0.5] > entropy[0.0] + 0.1


def test_the_critic_learns_what_can_be_known_of_returns(groups):
    """Here tasks that begin with an even word are won, whatever is done."""
    groups = [
        replace(
            group,
            episodes=tuple(
                replace(e, rewards=(0.0, float(e.sequences[0].ids[1] % 2 == 0)))
                for e in group.episodes
            ),
        )
        for group in groups
    ]
    model = small_llama(spread=0.5)
    plan = UpdatePlan(epochs=60, learning_rate=1e-3, critic_rate=10)
    learner = Learner(model, plan, critic=make_critic(model))
    objective = PolicyObjective(value_clip=None, value_coefficient=1.0)
    algorithm = Ppo(lam=1.0)
    first = learner.improve(algorithm.credit(groups, learner.values(groups)), objective, step=0)
    then = algorithm.credit(groups, learner.values(groups))
    assert first["critic/explained_variance"] == pytest.approx(0, abs=1e-6)
    assert then.metrics["critic/explained_variance"] > 0.5
    assert {"critic/vf_loss", "critic/vf_clip_frac", "critic/grad_norm"} <= first.keys()


def test_a_critic_of_its_own_leaves_the_policy_alone(groups):
    """With no advantage anywhere, only the critic changes."""
    model, body = small_llama(spread=0.5), small_llama(5, spread=0.5)
    learner = Learner(model, UpdatePlan(learning_rate=1e-2), critic=make_critic(model, body=body))
    credit = Ppo().credit(groups, learner.values(groups))
    idle = tuple(replace(one, advantages=np.zeros_like(one.advantages)) for one in credit.episodes)
    before = weights(learner)
    for step in range(2):  # the body is reached once the head says something
        learner.improve(Credit(idle, {}), PolicyObjective(), step=step)
    after = weights(learner)
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"model/head", "model/body"}


def test_learning_goes_on_from_a_checkpoint_as_if_nothing_had_happened(groups):
    plan = UpdatePlan(epochs=2, minibatches=3, learning_rate=3e-3)
    algorithm = Ppo()

    def make():
        model = small_llama(spread=0.5)
        return Learner(model, plan, critic=make_critic(model))

    def steps(learner, numbers):
        for step in numbers:
            credit = algorithm.credit(groups, learner.values(groups))
            learner.improve(credit, PolicyObjective(), step=step)

    whole, broken, resumed = make(), make(), make()
    steps(whole, range(4))
    steps(broken, range(2))
    resumed.load_tensors({name: tensor.clone() for name, tensor in broken.tensors().items()})
    steps(resumed, range(2, 4))
    assert whole.tensors().keys() == resumed.tensors().keys()
    assert all(torch.equal(t, resumed.tensors()[name]) for name, t in whole.tensors().items())


def test_a_checkpoint_of_another_model_is_refused():
    with pytest.raises(ConfigError, match="another model"):
        Learner(small_llama(), UpdatePlan()).load_tensors({})


def test_a_broken_gradient_is_not_followed(groups, caplog):
    learner = Learner(small_llama(), UpdatePlan())
    credit = Grpo().credit(groups)
    bad = replace(credit.episodes[0], advantages=credit.episodes[0].advantages * math.inf)
    before = weights(learner)
    with caplog.at_level(logging.WARNING):
        figures = learner.improve(
            Credit((bad, *credit.episodes[1:]), {}), PolicyObjective(), step=0
        )
    assert far(before, weights(learner)) == 0
    assert figures["actor/broken_gradients"] == 1
    assert figures["actor/updates"] == 0
    assert "the step is not made" in caplog.text


def test_nothing_to_learn_from_is_no_step(groups):
    learner = Learner(small_llama(), UpdatePlan())
    before = weights(learner)
    figures = learner.improve(Grpo().credit([made_group([1, 1])]), PolicyObjective(), step=0)
    assert figures["actor/updates"] == 0
    assert figures["credit/groups_without_variance"] == 1
    assert far(before, weights(learner)) == 0


def test_minibatches_share_the_episodes_out_evenly():
    units = [(Row(made_episode([n]).sequences[0]),) for n in range(10)]
    hands = list(deal(units, 3, seed=1))
    assert sorted(map(len, hands)) == [3, 3, 4]
    assert sorted(id(unit) for hand in hands for unit in hand) == sorted(map(id, units))
    assert [list(map(id, h)) for h in deal(units, 3, seed=1)] == [list(map(id, h)) for h in hands]
    assert [list(map(id, h)) for h in deal(units, 3, seed=2)] != [list(map(id, h)) for h in hands]
    assert len(list(deal(units[:2], 5, seed=0))) == 2, "never an empty one"
    assert list(deal([], 5, seed=0)) == []


def test_an_episode_of_several_sequences_stays_in_one_minibatch_and_counts_once():
    (s,) = made_episode([0, 1]).sequences
    both, single = (Row(s), Row(s)), (Row(s),)
    weights = [[r.weight for r in u] for u in weighed([both, single], PolicyObjective())]
    assert weights == [[1 / 6, 1 / 6], [1 / 6]]
    by_episode = PolicyObjective(aggregation="seq-mean-token-mean")
    weights = [[r.weight for r in u] for u in weighed([both, single], by_episode)]
    assert weights == [[1 / 8, 1 / 8], [1 / 4]]


def test_pairs_go_through_the_model_together():
    units = weighed(
        [tuple(Row(made_episode([n] * size).sequences[0]) for size in (1, 3)) for n in range(4)],
        PreferenceObjective(),
    )
    rows = [row for unit in units for row in unit]
    for part in cut(rows, PreferenceObjective(), budget=15):
        assert len({row.unit for row in part}) * 2 == len(part)
    apart = list(cut(rows, PolicyObjective(), budget=8))
    assert any(len({row.unit for row in part}) == len(part) for part in apart)


def test_preferences_by_hand(groups):
    """Before the first step the policy is the reference: the loss is log 2, no margin anywhere."""
    model = small_llama(spread=0.5)
    learner = Learner(model, UpdatePlan(learning_rate=3e-3), reference=copy.deepcopy(model))
    pairs = preference_pairs(groups)
    assert pairs
    first = learner.prefer(pairs, step=0)
    assert first["dpo/loss"] == pytest.approx(math.log(2), abs=1e-6)
    assert first["dpo/margin"] == pytest.approx(0, abs=1e-6)
    for step in range(1, 30):
        last = learner.prefer(pairs, step=step)
    assert last["dpo/accuracy"] > 0.9
    assert last["dpo/loss"] < 0.6


def test_preferences_are_the_same_in_however_many_passes(groups):
    found = []
    for budget in (1, 30, 100_000):
        model = small_llama(spread=0.5).double()
        plan = UpdatePlan(learning_rate=1e-2, tokens_per_pass=budget, epochs=3)
        learner = Learner(model, plan, reference=small_llama(4, spread=0.5).double())
        learner.prefer(preference_pairs(uneven(groups)), step=0)
        found.append(weights(learner))
    assert far(found[0], found[1]) < 1e-9
    assert far(found[0], found[2]) < 1e-9


def test_pairs_are_of_the_best_and_the_worst_that_did_not_fail():
    best, worst, middle = made_episode([3]), made_episode([1]), made_episode([2])
    mixed = TokenGroup("task", (middle, BROKEN, worst, best))
    assert preference_pairs([mixed, made_group([1, 1]), TokenGroup("gone", (BROKEN,))]) == [
        (best, worst)
    ]


def test_cloning_leaves_failures_out_and_lowers_the_loss():
    learner = Learner(small_llama(), UpdatePlan(epochs=10, learning_rate=1e-2))
    shown = demonstrate(tasks(12, SEED))
    first = learner.clone([*shown, BROKEN], step=0)
    second = learner.clone(shown, CloningObjective(), step=1)
    assert second["sft/loss"] < first["sft/loss"] / 2


def test_what_cannot_be_learnt_from_is_refused(groups):
    model = small_llama()
    credit = Grpo().credit(groups)
    with pytest.raises(ConfigError, match="reference"):
        Learner(model, UpdatePlan()).improve(credit, PolicyObjective(kl_coefficient=0.1), step=0)
    with pytest.raises(ConfigError, match="reference"):
        Learner(model, UpdatePlan()).prefer([], step=0)
    with pytest.raises(ConfigError, match="critic"):
        Learner(model, UpdatePlan()).values(groups)
    with_critic = Learner(model, UpdatePlan(), critic=make_critic(model))
    judged = Ppo().credit(groups, with_critic.values(groups))
    with pytest.raises(ConfigError, match="critic"):
        Learner(model, UpdatePlan()).improve(judged, PolicyObjective(), step=0)
    shown = [replace(e, states=("a", "b")) for e in demonstrate(tasks(2, SEED))]
    lazy = replace(shown[0], rewards=(0.0, 0.0))
    group = TokenGroup("task", (lazy, *shown))
    with pytest.raises(ValueError, match="not sampled"):
        Learner(model, UpdatePlan()).improve(Gigpo().credit([group]), PolicyObjective(), step=0)
    with pytest.raises(ValueError, match="failed"):
        Learner(model, UpdatePlan(), reference=model).prefer([(shown[0], BROKEN)], step=0)
    long = TokenGroup("task", (made_episode([0], lengths=[70]), made_episode([1])))
    with pytest.raises(ConfigError, match="71 tokens, but the model reads 64"):
        Learner(model, UpdatePlan()).improve(Grpo().credit([long]), PolicyObjective(), step=0)


def test_settings_that_would_do_nothing_or_harm_are_refused():
    for wrong in ({"epochs": 0}, {"minibatches": 0}, {"temperature": 0.0}, {"clip": 0.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            UpdatePlan(**wrong)
    with pytest.raises(ConfigError, match="k2 or k3"):
        PolicyObjective(kl_estimator="k1", kl_coefficient=0.1)
    with pytest.raises(ConfigError, match="horizon"):
        PolicyObjective(aggregation="seq-mean-token-sum-norm")
    with pytest.raises(ConfigError, match="Did you mean"):
        PolicyObjective(aggregation="token-meen")
