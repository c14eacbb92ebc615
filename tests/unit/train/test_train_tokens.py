"""Episodes as tokens: what is read, what is said, where a sequence ends, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_episodes import BROKEN, made_episode

from dreamgym.train.tokens import (
    READ,
    TokenEpisode,
    TokenGroup,
    TokenSequence,
    Weaver,
    environment_rewards,
    given_tokens,
    make_episode,
    outcome_rewards,
)
from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Provenance,
    SampledTokens,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)


def said(*ids: int, logprob: float = -1.0) -> SampledTokens:
    return SampledTokens(ids, (logprob,) * len(ids))


def test_a_growing_prompt_is_one_sequence_in_which_each_token_stands_once():
    weaver = Weaver()
    weaver.add((10, 11), said(20, 21, logprob=-0.5))
    weaver.add((10, 11, 20, 21, 12), said(22, logprob=-0.25))
    weaver.end((10, 11, 20, 21, 12, 22, 13, 14))
    assert weaver.sequences() == (
        TokenSequence(
            ids=(10, 11, 20, 21, 12, 22, 13, 14),
            turns=(READ, READ, 0, 0, READ, 1, READ, READ),
            logprobs=(-0.5, -0.5, -0.25),
        ),
    )


def test_a_prompt_that_does_not_go_on_begins_a_new_sequence():
    """A window that moved: the model saw turn 1 without what it said in turn 0."""
    weaver = Weaver()
    weaver.add((10, 11), said(20))
    weaver.add((10, 12), said(21))
    weaver.add((10, 12, 21, 13), said(22))
    weaver.end((99,))
    assert weaver.sequences() == (
        TokenSequence((10, 11, 20), (READ, READ, 0), (-1.0,)),
        TokenSequence((10, 12, 21, 13, 22), (READ, READ, 1, READ, 2), (-1.0, -1.0)),
    )


def test_another_tokenisation_of_what_was_said_is_not_taken_for_a_continuation():
    weaver = Weaver()
    weaver.add((10,), said(20, 21))
    weaver.add((10, 2021, 12), said(22))  # the same text, but as one token
    assert [sequence.ids for sequence in weaver.sequences()] == [(10, 20, 21), (10, 2021, 12, 22)]


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 3), min_size=1, max_size=3),
            st.lists(st.integers(0, 3), min_size=1, max_size=3),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_every_action_stands_after_exactly_what_was_read_before_it(turns):
    weaver, history, wanted = Weaver(), (), []
    for prompt, action, forget in turns:
        history = (*(() if forget else history), *prompt)
        weaver.add(history, said(*action))
        wanted.append((history, tuple(action)))
        history += tuple(action)
    found = {}
    for sequence in weaver.sequences():
        for place, turn in enumerate(sequence.turns):
            if turn != READ:
                found.setdefault(turn, (sequence.ids[:place], []))[1].append(sequence.ids[place])
    assert [(before, tuple(ids)) for before, ids in found.values()] == wanted


def test_sequences_that_cannot_be_learnt_from_are_refused():
    with pytest.raises(ValueError, match="first token is an action"):
        TokenSequence((1,), (0,), (-1.0,))
    with pytest.raises(ValueError, match="2 tokens but 1 turn"):
        TokenSequence((1, 2), (READ,), ())
    with pytest.raises(ValueError, match="1 action tokens but 0 logprobs"):
        TokenSequence((1, 2), (READ, 0), ())
    with pytest.raises(ValueError, match="in order"):
        TokenSequence((1, 2, 3), (READ, 1, 0), (-1.0, -1.0))
    with pytest.raises(ValueError, match="a token at least"):
        Weaver().add((), said(1))
    with pytest.raises(ValueError, match="a token at least"):
        Weaver().add((1,), said())


def test_episodes_whose_parts_do_not_fit_are_refused():
    whole = made_episode([0, 1])
    for wrong, message in (
        ({"rewards": (0.0,)}, "1 rewards, but actions of 2"),
        ({"rewards": (0.0, 0.0, 1.0)}, "3 rewards, but actions of 2"),
        ({"refused": (True,)}, "2 rewards, but 1 refused"),
        ({"states": ("a",)}, "2 rewards, but 1 states"),
        ({"rewards": (0.0, float("nan"))}, "not finite"),
        ({"sequences": whole.sequences * 2}, "in order"),
    ):
        with pytest.raises(ValueError, match=message):
            TokenEpisode(**{"sequences": whole.sequences, "rewards": whole.rewards, **wrong})


def test_a_failed_episode_may_have_broken_off_anywhere_and_is_no_member():
    group = TokenGroup("task", (made_episode([1]), BROKEN))
    assert group.valid == group.episodes[:1]


def trajectory(*, tokens=True, error=None) -> Trajectory:
    actions = [Action("a b", said(20, 21) if tokens else None), Action("c", said(22))]
    results = [
        StepResult(Observation("second"), reward=0.25, refused=True),
        StepResult(Observation("third"), reward=1.0, terminated=True, success=True),
    ]
    return Trajectory(
        id="t",
        task=Task("x#0", "x", "0", Split.TRAIN),
        opening=Observation("first"),
        steps=tuple(Step(a, r) for a, r in zip(actions, results, strict=True)),
        stop=StopReason.FAILED if error else StopReason.TERMINATED,
        provenance=Provenance(Source.REAL, "me"),
        error=error,
    )


def woven(*first: int) -> tuple[TokenSequence, ...]:
    weaver = Weaver()
    weaver.add((10,), said(*first))
    weaver.add((10, *first, 11), said(22))
    return weaver.sequences()


def test_a_trajectory_and_its_tokens_are_an_episode():
    episode = make_episode(trajectory(), woven(20, 21))
    assert episode.rewards == (0.0, 1.0)
    assert episode.refused == (True, False)
    assert episode.states == ("first", "second")
    assert episode.success and episode.terminated and episode.sampled
    assert episode.token_turns.tolist() == [0, 0, 1]
    assert episode.turn_rewards(0.1).tolist() == [-0.1, 1.0]
    given_rewards = make_episode(trajectory(), woven(20, 21), rewards=environment_rewards)
    assert given_rewards.rewards == (0.25, 1.0)
    assert outcome_rewards(trajectory()) == (0.0, 1.0)


def test_tokens_that_were_not_sampled_are_refused():
    with pytest.raises(ValueError, match="turn 0 has other tokens"):
        make_episode(trajectory(), woven(20, 23))
    with pytest.raises(ValueError, match="turn 0 has no tokens as sampled"):
        make_episode(trajectory(tokens=False), woven(20, 21))
    demonstrated = make_episode(trajectory(tokens=False), woven(20, 21), sampled=False)
    assert not demonstrated.sampled
    assert given_tokens((1, 2)).logprobs == (0.0, 0.0)


def test_a_broken_trajectory_is_a_failed_episode_without_a_reward():
    episode = make_episode(trajectory(error=EpisodeFailure("EnvCrash", "env.step", "gone")), ())
    assert episode.failed
    assert episode.rewards == ()
