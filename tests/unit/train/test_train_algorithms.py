"""Algorithms by hand: which tokens get which advantage, what is left out, what is counted."""

from __future__ import annotations

import numpy as np
import pytest
from made_episodes import BROKEN, made_episode, made_group

from dreamgym.errors import ConfigError
from dreamgym.train.algorithms import Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.tokens import TokenGroup, Weaver
from dreamgym.types import SampledTokens


def advantages(credit):
    return [one.advantages.tolist() for one in credit.episodes]


def group(*episodes):
    return TokenGroup("task", episodes)


def near(expected):
    return [pytest.approx(row, abs=1e-5) for row in expected]


def test_grpo_gives_all_tokens_of_an_episode_its_advantage():
    long, short = made_episode([0, 1], lengths=[2, 1]), made_episode([0], lengths=[2])
    # returns 1 and 0: mean .5, std .7071
    assert advantages(Grpo().credit([group(long, short)])) == near([[0.7071] * 3, [-0.7071] * 2])
    bare = Grpo(scale=False).credit([group(long, short)])
    assert advantages(bare) == near([[0.5] * 3, [-0.5] * 2])


def test_rloo_compares_with_the_others():
    credit = Rloo().credit([made_group([0, 0, 3])])
    assert advantages(credit) == near([[-1.5], [-1.5], [3]])


def test_a_penalty_for_refused_actions_goes_off_the_return():
    clumsy = made_episode([0, 1], refused=(True, False))
    deft = made_episode([0, 1], refused=(False, False))
    # returns .8 and 1: without a penalty there is nothing to learn
    credit = Grpo(scale=False, invalid_penalty=0.2).credit([group(clumsy, deft)])
    assert advantages(credit) == near([[-0.1, -0.1], [0.1, 0.1]])
    assert Grpo().credit([group(clumsy, deft)]).episodes == ()


def test_or_off_the_refused_turn_alone_and_then_groups_do_not_see_it():
    clumsy = made_episode([0, 1], refused=(True, False))
    failing = made_episode([0, 0], refused=(False, True))
    for algorithm in (
        Grpo(scale=False, invalid_penalty=0.2, penalise="turn"),
        Rloo(invalid_penalty=0.2, penalise="turn"),
    ):
        size = 1.0 if isinstance(algorithm, Rloo) else 0.5
        credit = algorithm.credit([group(clumsy, failing)])
        assert advantages(credit) == near([[size - 0.2, size], [-size, -size - 0.2]])


def test_gigpo_adds_the_comparison_of_turns():
    one = made_episode([0, 1], states=("hall", "attic"))
    two = made_episode([0, 0], states=("hall", "cellar"))
    # episodes: +-.5. What followed: .5 and 1 in the first, 0 and 0 in the second; only the hall was
    # seen twice: mean .25, so +-.25, which counts double
    algorithm = Gigpo(scale=False, gamma=0.5, step_weight=2.0)
    assert advantages(algorithm.credit([group(one, two)])) == near([[1.0, 0.5], [-1.0, -0.5]])


def test_gigpo_learns_from_groups_whose_episodes_all_end_alike():
    """Both win, one sooner: what followed the hall differs by the discount."""
    slow = made_episode([0, 0, 1], states=("hall", "hall", "attic"))
    quick = made_episode([0, 1], states=("hall", "attic"))
    credit = Gigpo(scale=False, gamma=0.5).credit([group(slow, quick)])
    # hall: .25, .5, .5 with mean .41667; attic: 1 and 1
    assert advantages(credit) == near([[-1 / 6, 1 / 12, 0], [1 / 12, 0]])
    assert credit.metrics["credit/groups_without_variance"] == 0


def test_gigpo_needs_states():
    with pytest.raises(ConfigError, match="states"):
        Gigpo().credit([made_group([0, 1])])


def test_ppo_follows_the_chain_of_action_tokens_by_hand():
    episode = made_episode([1, 2], lengths=[2, 1])
    values = np.array([0.5, 0.25, 1.0, 9.0])  # the task ended: the value after it is not used
    algorithm = Ppo(gamma=0.5, lam=0.8, whiten=False)
    (one,) = algorithm.credit([group(episode)], [[values]]).episodes
    assert one.advantages.tolist() == pytest.approx([1.4, 1.65, 1.0])  # as in the test of `gae`
    assert one.returns.tolist() == pytest.approx([1.9, 1.9, 2.0])
    assert one.values.tolist() == [0.5, 0.25, 1.0]


def test_ppo_bootstraps_only_where_a_limit_ended_the_episode_and_only_on_request():
    values = [[np.array([0.0, 4.0])]]
    for terminated, bootstrap, expected in (
        (True, False, 1.0),
        (True, True, 1.0),
        (False, False, 1.0),
        (False, True, 5.0),
    ):
        episode = made_episode([1], terminated=terminated, left=True)
        algorithm = Ppo(whiten=False, bootstrap=bootstrap)
        (one,) = algorithm.credit([group(episode)], values).episodes
        assert one.advantages.tolist() == [expected]
    with pytest.raises(ValueError, match="lacks its last state"):
        Ppo(bootstrap=True).credit([group(made_episode([1], terminated=False))], values)


def test_ppo_takes_a_penalty_off_the_refused_turn():
    episode = made_episode([0, 1], refused=(True, False))
    algorithm = Ppo(lam=0.0, whiten=False, invalid_penalty=0.25)
    (one,) = algorithm.credit([group(episode)], [[np.zeros(3)]]).episodes
    assert one.advantages.tolist() == [-0.25, 1.0]


def test_ppo_whitens_over_all_tokens_but_leaves_the_returns_alone():
    groups = [group(made_episode([1])), group(made_episode([3]), made_episode([2]))]
    values = [[np.zeros(2)], [np.zeros(2), np.zeros(2)]]
    credit = Ppo().credit(groups, values)
    assert advantages(credit) == near([[-1], [1], [0]])
    assert [one.returns.tolist() for one in credit.episodes] == [[1], [3], [2]]
    assert credit.metrics["critic/returns/mean"] == 2


def test_ppo_says_how_much_the_critic_knew():
    groups = [made_group([0, 2])]
    credit = Ppo(whiten=False).credit(groups, [[np.array([0.0, 0.0]), np.array([2.0, 0.0])]])
    assert credit.metrics["critic/explained_variance"] == pytest.approx(1)
    # with equal returns there is no variance to explain, and no figure is made up
    equal = Ppo().credit([made_group([1, 1])], [[np.zeros(2), np.zeros(2)]])
    assert "critic/explained_variance" not in equal.metrics


def test_ppo_without_values_or_with_others_is_told():
    with pytest.raises(ConfigError, match="critic"):
        Ppo().credit([made_group([1])])
    with pytest.raises(ValueError, match="3 values for 1 action tokens"):
        Ppo().credit([made_group([1])], [[np.zeros(3)]])


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ConfigError, match="Did you mean 'turn'"):
        Grpo(penalise="turns")
    with pytest.raises(ConfigError, match="would be a reward"):
        Rloo(invalid_penalty=-0.1)
    for make in (lambda: Ppo(lam=1.5), lambda: Ppo(token_gamma=-1), lambda: Gigpo(gamma=2)):
        with pytest.raises(ConfigError, match="from 0 to 1"):
            make()


def test_groups_without_variance_are_left_out_and_counted():
    groups = [
        made_group([0, 1]),
        made_group([1, 1]),
        made_group([0, 0]),
        TokenGroup("left with one", (made_episode([1]), BROKEN, BROKEN)),
        TokenGroup("left with none", (BROKEN,)),
    ]
    for algorithm in (Grpo(), Rloo()):
        metrics = algorithm.credit(groups).metrics
        assert metrics["credit/groups"] == 5
        assert metrics["credit/groups_without_variance"] == 4
        assert metrics["credit/failed_episodes"] == 3
        assert metrics["credit/trained_episodes"] == 2
        assert metrics["credit/trained_tokens"] == 2


def test_figures_are_of_episodes_that_did_not_fail():
    won = made_episode([0, 1], refused=(True, False), success=True)
    credit = Grpo().credit([TokenGroup("task", (won, made_episode([0, 0]), BROKEN))])
    assert credit.metrics["credit/reward_mean"] == 0.5
    assert credit.metrics["credit/success"] == 0.5
    assert credit.metrics["credit/refused"] == 0.25
    nothing = Grpo().credit([TokenGroup("task", (BROKEN,))])
    assert "credit/reward_mean" not in nothing.metrics, "no figure is made up"
    assert nothing.episodes == ()


def test_an_episode_of_several_sequences_is_one_chain():
    """A window that moved cuts the tokens in two; what the actions were worth stays the same."""
    weaver = Weaver()
    weaver.add((1,), SampledTokens((2, 3), (-0.5, -0.5)))
    weaver.add((9, 9), SampledTokens((4,), (-0.5,)))
    whole = made_episode([1, 2], lengths=[2, 1])
    pieces = type(whole)(weaver.sequences(), whole.rewards)
    assert len(pieces.sequences) == 2
    values = [[np.array([0.5, 0.25, 1.0, 0.0])]]
    found = [Ppo(gamma=0.5).credit([group(one)], values).episodes[0] for one in (whole, pieces)]
    assert found[0].advantages.tolist() == found[1].advantages.tolist()
