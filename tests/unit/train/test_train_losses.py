"""Losses by hand, token by token, and what their gradients are on average."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.errors import ConfigError
from dreamgym.train.losses import (
    Clip,
    kl_estimate,
    policy_loss,
    preference_loss,
    token_weights,
    value_loss,
)

NUMBERS = st.lists(st.integers(1, 9), min_size=1, max_size=6)
MODES = ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]


def surrogate(ratio: float, advantage: float, **clip: float | None):
    old = torch.tensor([-1.0], dtype=torch.float64)
    logprobs = (old + math.log(ratio)).requires_grad_()
    found = policy_loss(
        logprobs,
        old,
        advantages_N=torch.tensor([advantage], dtype=torch.float64),
        clip=Clip(**clip),
    )
    (gradient,) = torch.autograd.grad(found.losses_N.sum(), logprobs)
    return found, float(found.losses_N.detach()), float(gradient)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.0, 2.0, -2.0, -2.0),  # as played: -A, and its gradient -A
        (1.1, 2.0, -2.2, -2.2),  # within the clip: -A r
        (1.5, 2.0, -2.4, 0.0),  # good and likelier already: held at 1.2
        (0.5, 2.0, -1.0, -1.0),  # good but less likely: nothing holds it back
        (0.5, -2.0, 1.6, 0.0),  # bad and less likely already: held at .8
        (1.5, -2.0, 3.0, 3.0),  # bad but likelier: pushed down
        (4.0, -2.0, 6.0, 0.0),  # bad and far likelier: the dual clip bounds it at 3
        (4.0, 0.0, 0.0, 0.0),
    ],
)
def test_the_clipped_surrogate_by_hand(ratio, advantage, loss, gradient):
    found, value, slope = surrogate(ratio, advantage)
    assert value == pytest.approx(loss)
    assert slope == pytest.approx(gradient)
    assert found.ratios_N.tolist() == pytest.approx([ratio])


def test_the_two_sides_of_the_clip_are_set_apart():
    assert surrogate(1.25, 1.0, low=0.2, high=0.3)[1] == pytest.approx(-1.25)
    assert surrogate(1.35, 1.0, low=0.2, high=0.3)[1] == pytest.approx(-1.3)
    assert surrogate(0.75, -1.0, low=0.2, high=0.3)[1] == pytest.approx(0.8)
    assert surrogate(0.75, -1.0, low=0.3, high=0.2)[1] == pytest.approx(0.75)


def test_the_dual_clip_can_be_left_out():
    assert surrogate(9.0, -1.0, dual=None)[1] == pytest.approx(9)
    assert surrogate(9.0, -1.0, dual=5.0)[1] == pytest.approx(5)


def test_what_was_clipped_is_counted_by_side():
    marks = {
        (r, a): [bool(x) for x in (f.clipped_N, f.bounded_N)]
        for r, a in [(1.5, 1.0), (0.5, -1.0), (0.5, 1.0), (1.5, -1.0), (4.0, -1.0), (1.0, 1.0)]
        for f in [surrogate(r, a)[0]]
    }
    assert marks == {
        (1.5, 1.0): [True, False],
        (0.5, -1.0): [True, False],
        (0.5, 1.0): [False, False],
        (1.5, -1.0): [False, False],
        (4.0, -1.0): [False, True],
        (1.0, 1.0): [False, False],
    }


def test_logprobs_far_apart_give_no_infinite_loss():
    found = policy_loss(
        torch.tensor([0.0, -500.0]),
        torch.tensor([-500.0, 0.0]),
        advantages_N=torch.tensor([-1.0, 1.0]),
        clip=Clip(dual=None),
    )
    assert torch.isfinite(found.losses_N).all()


def test_clips_that_mean_nothing_are_refused():
    for wrong in ({"low": 1.5}, {"high": -0.1}, {"dual": 1.0}):
        with pytest.raises(ConfigError, match="clip"):
            Clip(**wrong)


def test_kl_estimates_by_hand():
    policy = torch.tensor([math.log(0.5)])
    reference = torch.tensor([math.log(0.25)])  # d = log 2 = .693
    assert float(kl_estimate(policy, reference, "k1")) == pytest.approx(0.6931, abs=1e-4)
    assert float(kl_estimate(policy, reference, "k2")) == pytest.approx(0.2402, abs=1e-4)
    # exp(-d) - 1 + d = .5 - 1 + .6931
    assert float(kl_estimate(policy, reference, "k3")) == pytest.approx(0.1931, abs=1e-4)
    with pytest.raises(ConfigError, match="Did you mean 'k"):
        kl_estimate(policy, reference, "k4")


def test_what_the_estimates_and_their_gradients_are_on_average():
    """Over all tokens of a small vocabulary, each as often as the policy says it."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, generator=generator, dtype=torch.float64).requires_grad_()
    reference = torch.log_softmax(torch.randn(7, generator=generator, dtype=torch.float64), -1)

    def average(estimator):
        logprobs = torch.log_softmax(scores, -1)
        each = kl_estimate(logprobs, reference, estimator)
        mean = (logprobs.exp().detach() * each).sum()
        return mean.item(), torch.autograd.grad(mean, scores)[0]

    logprobs = torch.log_softmax(scores, -1)
    kl = (logprobs.exp() * (logprobs - reference)).sum()
    slope = torch.autograd.grad(kl, scores)[0]
    (k1, slope1), (_, slope2), (k3, slope3) = map(average, ("k1", "k2", "k3"))
    assert [k1, k3] == pytest.approx([kl.item()] * 2)
    assert torch.allclose(slope1, torch.zeros(7, dtype=torch.float64))
    assert torch.allclose(slope2, slope)
    # k3's pulls the reference's way, too, but it is the gradient of the other KL
    back = (reference.exp() * (reference - torch.log_softmax(scores, -1))).sum()
    assert torch.allclose(slope3, torch.autograd.grad(back, scores)[0])


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_k2_and_k3_are_never_negative_and_0_where_nothing_differs(gaps):
    gap = torch.tensor(gaps, dtype=torch.float64)
    for estimator in ("k2", "k3"):
        assert (kl_estimate(gap, torch.zeros_like(gap), estimator) >= -1e-15).all()
        assert not kl_estimate(gap, gap, estimator).any()


def values(value: float, old: float, target: float, clip: float | None):
    losses, clipped = value_loss(
        torch.tensor([value]), torch.tensor([target]), old_N=torch.tensor([old]), clip=clip
    )
    return float(losses), bool(clipped)


def test_the_value_loss_by_hand():
    assert values(1.0, 0.9, 3.0, 0.2) == (pytest.approx(2.0), False)  # within: (1 - 3)^2 / 2
    # moved by 1 towards the target, held at 0.2: (0.2 - 3)^2 / 2, the larger
    assert values(1.0, 0.0, 3.0, 0.2) == (pytest.approx(3.92), True)
    # moved away from the target: the free error is the larger, and it counts
    assert values(-1.0, 0.0, 3.0, 0.2) == (pytest.approx(8.0), False)
    assert values(1.0, 0.0, 3.0, None) == (pytest.approx(2.0), False)


def test_the_preference_loss_by_hand():
    losses = preference_loss(torch.tensor([0.0, 10.0]), beta=0.1)
    # -log(1/2), and -log(1 / (1 + e^-1))
    assert losses.tolist() == pytest.approx([0.6931, 0.3133], abs=1e-4)


def test_weights_by_hand():
    """Two episodes of 1 and 3 action tokens."""
    assert token_weights([1, 3], "token-mean") == [1 / 4, 1 / 4]
    assert token_weights([1, 3], "seq-mean-token-mean") == [1 / 2, 1 / 6]
    assert token_weights([1, 3], "seq-mean-token-sum") == [1 / 2, 1 / 2]
    assert token_weights([1, 3], "seq-mean-token-sum-norm", horizon=10) == [1 / 20, 1 / 20]
    with pytest.raises(ConfigError, match="Did you mean 'token-mean'"):
        token_weights([1], "token_mean")


@given(NUMBERS)
def test_what_the_weights_add_up_to(counts):
    def total(mode, **settings):
        pairs = zip(counts, token_weights(counts, mode, **settings), strict=True)
        return sum(count * weight for count, weight in pairs)

    mean = sum(counts) / len(counts)
    assert total("token-mean") == pytest.approx(1)
    assert total("seq-mean-token-mean") == pytest.approx(1)
    assert total("seq-mean-token-sum") == pytest.approx(mean)
    assert total("seq-mean-token-sum-norm", horizon=7) == pytest.approx(mean / 7)


@pytest.mark.parametrize("mode", MODES)
def test_an_episode_without_action_tokens_does_not_count(mode):
    assert token_weights([2, 0, 4], mode)[::2] == token_weights([2, 4], mode)
