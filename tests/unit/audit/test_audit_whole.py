"""A whole audit: a true dream passes, a flattering one is caught everywhere, a broken one counts
nowhere.
"""

import asyncio

import pytest
from dreamed_corridor import Hasty, behaviours, dream, flattery, recorded, slots_of, told, truth

from dreamgym.agents.behaviour import Behaviour
from dreamgym.audit import AuditPlan, Player, Subject, audit
from dreamgym.errors import LLMError
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.testing import CorridorWorld


def report_on(world, *, policy=Hasty, plan=None, reality=None):
    async def once():
        slots = slots_of(lambda slot: Behaviour("policy", policy), episodes=40)
        return await audit(
            Subject(world, HashingEmbedder(), real=reality or CorridorWorld()),
            await recorded(),
            players=[Player("policy", slots, in_dream=True)],
            plan=plan,
        )

    return asyncio.run(once())


@pytest.fixture(scope="module")
def oracle():
    return report_on(dream(truth))


@pytest.fixture(scope="module")
def flatterer():
    return report_on(dream(flattery))


def test_a_true_dream_gets_perfect_figures(oracle):
    step, (policy,), loop = oracle.one_step, oracle.on_policy, oracle.closed_loop
    perfect = (
        step.figures.precision, step.figures.recall, step.figures.done_f1, step.figures.exact,
        step.figures.invalid_refused, step.figures.same_state, step.figures.token_f1,
        step.figures.similarity, policy.figures.precision, policy.figures.recall,
        policy.figures.agreement, loop.figures.agreement, loop.figures.precision,
    )  # fmt: skip
    assert [figure.mean for figure in perfect] == [1.0] * len(perfect)
    none = (
        step.figures.false_success, step.figures.false_success_invalid, step.figures.valid_refused,
        step.figures.reward_error, policy.figures.gap, loop.figures.gap, policy.drift.per_step,
        loop.drift.per_step, oracle.luck.reward_spread, oracle.luck.states_differ,
    )  # fmt: skip
    assert [figure.mean for figure in none] == [0.0] * len(none)
    assert loop.rank_correlation.mean == 1.0
    assert all(bound.model_error == 0.0 for bound in oracle.bounds)
    assert policy.figures.dream_success.mean == policy.figures.real_success.mean > 0
    assert oracle.disagreements == ()
    assert oracle.reasons == ()


def test_a_flattering_dream_is_caught_by_every_figure(flatterer):
    step, (policy,), loop = flatterer.one_step, flatterer.on_policy, flatterer.closed_loop
    assert step.figures.precision.mean < 0.8
    assert step.figures.false_success.mean > 0.1
    assert step.figures.false_success_invalid.mean > 0.2
    assert step.figures.invalid_refused.mean == 0.0
    assert step.confusion.only_told > 0
    assert policy.figures.dream_success.mean == 1.0
    assert policy.figures.precision.mean == policy.figures.real_success.mean < 0.5
    assert policy.figures.gap.mean > 0.5
    assert policy.refused_dream.mean == 0.0 < policy.refused_real.mean
    assert loop.figures.agreement.mean < 0.9
    assert loop.drift.per_step.mean > 0.1
    assert all(bound.model_error > 1 for bound in flatterer.bounds)
    assert any("false" not in one.where for one in flatterer.disagreements)


def test_the_gate_names_every_reason(flatterer):
    reasons = " ".join(flatterer.reasons)
    for words in ("precision", "gap", "false success", "invalid actions refused", "agreement"):
        assert words in reasons


def test_a_simulator_that_fails_counts_nowhere():
    def failing(state, action):
        return LLMError("no answer") if action == "dance" else truth(state, action)

    report = report_on(dream(failing))
    step, loop = report.one_step, report.closed_loop
    assert step.failed == sum(count for _, count in step.failures) > 0
    assert step.figures.exact.mean == 1.0
    assert step.figures.exact.count == step.steps - step.failed
    assert loop.failed > 0
    assert loop.figures.agreement.mean == 1.0
    assert loop.figures.agreement.count == loop.episodes - loop.failed
    assert "failed episodes" in " ".join(report.reasons)


def test_a_broken_reality_is_no_disagreement():
    broken = CorridorWorld(breaks=lambda task, step: task.key == "2" and step == 1)
    (policy,) = report_on(dream(truth), reality=broken).on_policy
    assert policy.failed > 0
    assert policy.figures.agreement.mean == 1.0
    assert policy.figures.agreement.count == policy.episodes - policy.failed


def test_unknown_dreams_are_counted_and_nothing_else():
    from dreamgym.experience import Pessimism

    world = dream(truth, pessimism=Pessimism(doubt=lambda query, told: "so far from home" if
                                             told.success else ""))  # fmt: skip
    report = report_on(world)
    (policy,) = report.on_policy
    assert policy.unknown > 0
    assert not policy.figures.precision.known
    assert policy.figures.agreement.mean == 1.0
    assert report.one_step.unknown > 0
    assert [name for name, _ in report.doubts] == ["doubt"]
    assert dict(report.doubts)["doubt"] == dict(report.origins)["unknown"]
    assert report.one_step.figures.exact.mean == 1.0
    assert "precision was not measured" in " ".join(report.reasons)


def test_real_steps_are_counted(oracle):
    (policy,) = oracle.on_policy
    assert policy.real_steps == policy.dream_steps > 0
    # The policy's own real episodes are paid for too.
    assert oracle.cost.real_steps == 2 * policy.real_steps


def test_luck_is_seen():
    turns = iter(range(10**6))

    def moody(state, action):
        if action == "take coin" and next(turns) % 2:
            return told(state, state, refused=True)
        return truth(state, action)

    report = report_on(dream(moody), plan=AuditPlan(luck_episodes=30))
    assert report.luck.reward_spread.mean > 0
    assert report.luck.outcome_differs.mean > 0


def test_a_policy_that_needs_the_engine_is_told_again():
    async def once():
        slots = slots_of(behaviours, episodes=9)
        return await audit(
            Subject(dream(truth), HashingEmbedder(), real=CorridorWorld()),
            await recorded(episodes=6),
            players=[Player("expert", slots, in_dream=False)],
        )

    report = asyncio.run(once())
    assert report.on_policy == ()
    assert report.closed_loop.episodes == 15
    assert "on-policy precision was not measured" in report.reasons


def test_a_real_episode_that_broke_is_counted_as_failed():
    broken = CorridorWorld(breaks=lambda task, step: task.key == "2")

    async def once():
        return await audit(
            Subject(dream(truth), HashingEmbedder(), real=broken),
            await recorded(episodes=6),
            players=[Player("expert", slots_of(behaviours, episodes=9), in_dream=False)],
        )

    loop = asyncio.run(once()).closed_loop
    assert (loop.episodes, loop.failed) == (15, 1)
    assert loop.figures.agreement.count == 14
