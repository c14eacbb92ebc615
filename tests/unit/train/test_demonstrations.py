"""Demonstrations: which are taken, what of them is learnt, how they are told."""

from dataclasses import replace

import pytest
from test_renaming import EPISODES, FOODS, ROOMS

from dreamgym.agents.marks import Marks
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.agents.policy_prompt import MARKS, Format
from dreamgym.errors import ConfigError
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.train.demonstrations import (
    Retelling,
    choose_demonstrations,
    episode_samples,
    episode_sequences,
    policy_texts,
)
from dreamgym.train.renaming import Names
from dreamgym.train.tokens import READ
from dreamgym.types import Action, Source, Split

NAMES = Names((ROOMS, FOODS))


@pytest.fixture(scope="module")
def words():
    texts = policy_texts(EPISODES, EPISODES, list_actions=False)
    return train_word_tokenizer(texts, special=MARKS[:-1], vocab_size=600, min_count=1)


def by(name, one, **changes):
    return replace(one, provenance=replace(one.provenance, behaviour=name, **changes))


def test_exactly_so_many_are_taken_and_fewer_are_among_more():
    few = choose_demonstrations(EPISODES, behaviour="expert", count=5, seed=1)
    more = choose_demonstrations(EPISODES, behaviour="expert", count=20, seed=1)
    assert len(few) == 5
    assert few == more[:5]
    assert few != choose_demonstrations(EPISODES, behaviour="expert", count=5, seed=2)


def test_only_real_successes_of_the_train_split_by_that_policy_count():
    lost = replace(EPISODES[0], steps=EPISODES[0].steps[:1])
    held = replace(EPISODES[1], task=replace(EPISODES[1].task, split=Split.DEV))
    dreamed = by("expert", EPISODES[2], source=Source.DREAM)
    noisy = by("noisy", EPISODES[3])
    again = replace(EPISODES[4], id="again")
    given = [lost, held, dreamed, noisy, EPISODES[4], again]
    assert choose_demonstrations(given, behaviour="expert", count=1, seed=0) == [EPISODES[4]]
    with pytest.raises(ConfigError, match=r"2 demonstrations .* 1 tasks .*expert 2, noisy 1"):
        choose_demonstrations(given, behaviour="expert", count=2, seed=0)


def test_a_vocabulary_never_sees_the_actions_of_others():
    secret = replace(EPISODES[0].steps[0], action=Action("abracadabra"))
    spy = replace(EPISODES[0], steps=(secret, *EPISODES[0].steps[1:]))
    texts = list(policy_texts([spy], [EPISODES[1]], list_actions=False))
    assert not any("abracadabra" in text for text in texts)
    assert EPISODES[1].steps[0].action.text in texts
    assert any(EPISODES[0].steps[0].result.observation.text in text for text in texts)


def test_a_vocabulary_can_spell_what_was_tried_before():
    said = EPISODES[0].steps[0].action.text
    marked = list(policy_texts([], EPISODES[:1], list_actions=False, marks=Marks(tried=True)))
    assert said in marked and f"{said} ~" in marked
    assert not any("~" in text for text in policy_texts([], EPISODES[:1], list_actions=False))


@pytest.mark.parametrize("format", [Format.COMPACT, Format.CHAT])
def test_only_actions_are_learnt_and_observations_never(words, format):
    card = PolicyCard("e", format)
    for one in EPISODES[:6]:
        samples = episode_samples(one, words, card=card, positions=2048)
        assert len(samples) == (1 if format is Format.COMPACT else len(one.steps))
        learnt = [
            words.decode([t for t, span in zip(s.ids, s.spans, strict=True) if span])
            for s in samples
        ]
        said = [step.action.text for step in one.steps]
        if format is Format.CHAT:
            said = [f"<action>{action}</action>" for action in said]
            assert learnt == [f"{action}<end>" for action in said]
        else:
            assert learnt == ["".join(f"{action}<end>" for action in said)]


def test_refused_actions_are_read_but_not_learnt(words):
    one = EPISODES[0]
    refused = replace(one.steps[1], result=replace(one.steps[1].result, refused=True))
    one = replace(one, steps=(one.steps[0], refused, one.steps[2]))
    (sample,) = episode_samples(one, words, card=PolicyCard("e"), positions=2048)
    learnt = words.decode([t for t, s in zip(sample.ids, sample.spans, strict=True) if s])
    assert one.steps[1].action.text not in learnt
    assert one.steps[1].action.text in words.decode(sample.ids)


def test_a_window_cuts_an_episode_into_sequences_that_learn_each_action_once(words):
    one = replace(EPISODES[0], steps=EPISODES[0].steps * 4)
    card = PolicyCard("e", window=2)
    sequences = episode_sequences(one, words, card=card, positions=2048)
    assert len(sequences) > 1
    learnt = [turn for each in sequences for turn in each.turns if turn != READ]
    assert sorted(set(learnt)) == list(range(12))
    whole = episode_sequences(one, words, card=PolicyCard("e"), positions=2048)
    assert len(learnt) == sum(turn != READ for turn in whole[0].turns)


def test_each_epoch_tells_some_anew_and_always_the_same_way():
    told = Retelling(EPISODES, NAMES, share=0.5, seed=4)
    assert told.epoch(3) == Retelling(EPISODES, NAMES, share=0.5, seed=4).epoch(3)
    assert told.epoch(3) != told.epoch(4)
    same = sum(new == old for new, old in zip(told.epoch(0), EPISODES, strict=True))
    assert 5 <= same <= 20
    assert Retelling(EPISODES, NAMES, share=0.0, seed=4).epoch(0) == EPISODES
