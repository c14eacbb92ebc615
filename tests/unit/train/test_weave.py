"""Played groups as tokens: as sampled, in order, and without what nobody can learn from."""

from dataclasses import replace

import pytest
from walkers import ANSWERER, PLAY, Walker, corridor_tasks, run

from dreamgym.rollout.groups import plan_groups, play_groups
from dreamgym.testing import CorridorWorld
from dreamgym.train.algorithms import Grpo
from dreamgym.train.readout import score_sequences
from dreamgym.train.weave import token_groups, weave


@pytest.fixture(scope="module")
def walker():
    return Walker()


@pytest.fixture(scope="module")
def groups(walker):
    return play(walker, CorridorWorld())


def play(walker, world):
    slots = plan_groups(corridor_tasks(), walker.behaviour(), PLAY, step=0, answerer=ANSWERER)
    return run(play_groups(slots, world, PLAY))


def test_an_episode_is_one_sequence_of_what_was_read_and_sampled(walker, groups):
    for one in map(written, groups[2].episodes):
        (sequence,) = weave(one, walker.writer)
        said = [token for step in one.steps for token in step.action.tokens.ids]
        probabilities = [p for step in one.steps for p in step.action.tokens.logprobs]
        marked = [i for i, turn in zip(sequence.ids, sequence.turns, strict=True) if turn >= 0]
        assert marked == said
        assert list(sequence.logprobs) == probabilities


def written(one):
    """Return the episode as if its actions had been written word by word."""
    steps = [
        replace(step, action=replace(step.action, tokens=replace(step.action.tokens, choice=None)))
        for step in one.steps
    ]
    return replace(one, steps=tuple(steps))


def test_a_choice_is_learnt_as_a_share_among_its_candidates(walker, groups):
    for one in groups[2].episodes:
        (sequence,) = weave(one, walker.writer)
        choices = [step.action.tokens.choice for step in one.steps]
        assert list(sequence.logprobs) == [choice.logprob for choice in choices]
        assert [d.candidates for d in sequence.decisions] == [c.candidates for c in choices]
        assert [d.chosen for d in sequence.decisions] == [c.chosen for c in choices]


def test_the_learner_finds_the_logprobs_that_were_sampled(walker, groups):
    sequences = [s for one in groups[1].episodes for s in weave(one, walker.writer)]
    again = score_sequences(walker.model, sequences, temperature=1.0, budget=4096)
    for sequence, scores in zip(sequences, again, strict=True):
        assert scores == pytest.approx(sequence.logprobs, abs=1e-4)


def test_failed_members_leave_the_groups_credit_alone(walker, groups):
    fallen = CorridorWorld(breaks=lambda task, step: step >= 2)
    told = token_groups(play(walker, fallen), walker.writer)
    failed = [episode.failed for group in told for episode in group.episodes]
    assert any(failed)
    assert not all(failed)
    credit = Grpo().credit(told)
    assert credit.metrics["credit/failed_episodes"] == sum(failed)
    assert credit.metrics["credit/reward_mean"] == 1.0  # the short ones end in time


def test_unknown_ends_are_left_out_or_earn_nothing_as_asked(walker, groups):
    one = groups[0].episodes[0]
    last = replace(
        one.steps[-1],
        reasoning="[unknown] nobody can tell",
        result=replace(one.steps[-1].result, terminated=False, success=False, truncated=True),
    )
    lost = replace(groups[0], episodes=(replace(one, steps=(*one.steps[:-1], last)),))
    (left_out,) = token_groups([lost], walker.writer)[0].episodes
    (learnt,) = token_groups([lost], walker.writer, learn_unknown=True)[0].episodes
    assert left_out.failed
    assert not learnt.failed
    assert sum(learnt.rewards) == 0


def test_actions_without_tokens_are_refused(walker, groups):
    one = groups[0].episodes[0]
    bare = replace(one.steps[0], action=replace(one.steps[0].action, tokens=None))
    with pytest.raises(ValueError, match="turn 0 has no tokens"):
        weave(replace(one, steps=(bare,)), walker.writer)
