"""Lessons: what is shown, what is learnt and under which label."""

import re
from dataclasses import replace

import pytest

from dreamgym.experience.prompt import MARKS, Style, Switches, step_answer_text, step_prompt
from dreamgym.models.tokenizer import END, train_word_tokenizer
from dreamgym.replay import open_store
from dreamgym.train.lessons import (
    SPANS,
    as_many_as_used,
    encode,
    is_hard,
    lesson_texts,
    make_lessons,
    with_ending_share,
    with_hard_share,
)
from played_corridors import played

SWITCHES = Switches()


@pytest.fixture
def recorded():
    return [played(number) for number in range(6)] + [played(0, name="again")]


@pytest.fixture
def lessons(recorded, tmp_path):
    with open_store(tmp_path / "store.sqlite") as store:
        store.add(recorded)
        with store.snapshot() as memory:
            return list(make_lessons(recorded, memory=memory, references=3))


@pytest.fixture
def tokenizer(lessons):
    texts = lesson_texts(lessons, style=Style.COMPACT, switches=SWITCHES)
    return train_word_tokenizer(texts, special=[mark for mark in MARKS if mark != END])


def test_every_step_is_a_lesson_with_reasoning(lessons, recorded):
    steps = [step.id for one in recorded for step in one.transitions()]
    assert [lesson.transition.id for lesson in lessons] == steps
    assert all(lesson.answer.reasoning for lesson in lessons)


def test_no_reference_is_from_the_own_trajectory(lessons):
    assert all(lesson.query.references for lesson in lessons)
    for lesson in lessons:
        sources = {found.transition.trajectory_id for found in lesson.query.references}
        assert lesson.transition.trajectory_id not in sources


def test_another_episode_of_the_same_task_may_be_a_reference(lessons):
    first = lessons[0]
    assert first.transition.trajectory_id == "played-train-0"
    found = {one.transition.trajectory_id for one in first.query.references}
    assert "again-train-0" in found


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_share_of_the_steps_is_asked_as_if_nothing_of_the_task_were_on_record(
    recorded, tmp_path, share
):
    with open_store(tmp_path / "store.sqlite") as store:
        store.add(recorded)
        with store.snapshot() as memory:
            found = list(make_lessons(recorded, memory=memory, references=3, forget=share))
    twins = [one for one in found if one.transition.task_id == found[0].transition.task_id]
    own = [
        any(ref.transition.task_id == one.transition.task_id for ref in one.query.references)
        for one in twins
    ]
    assert not all(own)
    assert any(own) == (share < 1.0)


def test_a_share_of_the_steps_is_asked_with_some_of_the_episodes_of_the_task(recorded, tmp_path):
    again = [replace(one, id=f"{one.id}-{number}") for one in recorded for number in range(6)]

    def twins(**shares):
        with store.snapshot() as memory:
            found = list(make_lessons(again, memory=memory, references=3, **shares))
        return [
            {ref.transition.trajectory_id for ref in one.query.references
             if ref.transition.task_id == one.transition.task_id}
            for one in found
        ]  # fmt: skip

    with open_store(tmp_path / "store.sqlite") as store:
        store.add(again)
        full, thinned = twins(), twins(thin=0.9)
        assert thinned == twins(thin=0.9), "the same parts every time"
    assert len(full) == len(thinned)
    assert len({frozenset(one) for one in thinned}) > len({frozenset(one) for one in full})
    assert sum(not one for one in thinned) > sum(not one for one in full)


def test_without_memory_there_are_no_references(recorded):
    alone = list(make_lessons(recorded, memory=None, references=3))
    assert len(alone) == sum(len(one.steps) for one in recorded)
    assert not any(lesson.query.references for lesson in alone)


def spans_of(sample, tokenizer):
    """Return the learnt text under each label, and the text that is only read."""
    texts = {
        name: tokenizer.decode([i for i, s in zip(sample.ids, sample.spans, strict=True) if s == n])
        for n, name in enumerate(SPANS, start=1)
    }
    read = [i for i, s in zip(sample.ids, sample.spans, strict=True) if s == 0]
    return texts, read


def test_the_prompt_is_read_and_the_answer_learnt_part_by_part(lessons, tokenizer):
    for lesson in lessons:
        sample = encode(lesson, tokenizer, style=Style.COMPACT, switches=SWITCHES)
        texts, read = spans_of(sample, tokenizer)
        prompt = step_prompt(lesson.query, style=Style.COMPACT, switches=SWITCHES)
        assert read == list(tokenizer.prompt_ids(prompt))
        assert sample.spans[: len(read)] == (0,) * len(read), "the prompt comes first"
        assert sample.ids[-1] in tokenizer.end_ids
        assert texts["reasoning"].strip().startswith(lesson.answer.reasoning.split()[0])
        assert ("<refused>" if lesson.transition.refused else "<ok>") in texts["flags"]
        assert ("<win>" in texts["flags"]) == lesson.transition.success
        assert not any(mark in texts["reasoning"] for mark in ("<ok>", "<refused>", "<win>"))


def test_what_was_said_is_learnt_as_state(lessons, tokenizer):
    refused = next(lesson for lesson in lessons if lesson.transition.refused)
    sample = encode(refused, tokenizer, style=Style.COMPACT, switches=SWITCHES)
    assert "you cannot do that" in spans_of(sample, tokenizer)[0]["state"]


def test_the_learnt_tokens_spell_the_answer(lessons, tokenizer):
    for lesson in lessons:
        sample = encode(lesson, tokenizer, style=Style.COMPACT, switches=SWITCHES)
        answer = step_answer_text(lesson.answer, style=Style.COMPACT, switches=SWITCHES)
        learnt = [i for i, s in zip(sample.ids, sample.spans, strict=True) if s]
        whole = list(tokenizer.encode(answer))
        assert learnt == whole if learnt[-1] == whole[-1] else learnt == [*whole, learnt[-1]]


def test_without_reasoning_none_is_learnt(lessons, tokenizer):
    quiet = Switches(reasoning=False)
    sample = encode(lessons[0], tokenizer, style=Style.COMPACT, switches=quiet)
    assert list(SPANS).index("reasoning") + 1 not in sample.spans


def test_the_full_style_is_cut_at_its_tags(lessons):
    # A chat has no tokenizer here, so the pieces are looked at as texts.
    from dreamgym.train.lessons import _pieces

    answer = step_answer_text(lessons[2].answer, style=Style.FULL, switches=SWITCHES)
    pieces = list(_pieces(answer, style=Style.FULL, reasoning=True))
    assert "".join(text for text, _ in pieces) == answer
    kinds = {name: text for text, name in pieces}
    assert kinds["reasoning"].startswith("<think>")
    assert kinds["state"].startswith(("<edit>", "<next_state>"))
    assert "Success:" in kinds["flags"]


@pytest.fixture
def steps(recorded):
    return [step for one in recorded for step in one.transitions()]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.6, 0.9])
def test_the_share_of_hard_steps_is_as_asked(steps, share):
    mixed = with_hard_share(steps, share, seed=0)
    hard = sum(map(is_hard, mixed))
    others = len(mixed) - hard
    assert min(hard, others) >= 1
    assert hard == pytest.approx(others * share / (1 - share), abs=max(1, share / (1 - share)))
    order = [steps.index(one) for one in mixed]
    assert order == sorted(order)


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_the_share_of_endings_is_at_least_as_asked(steps, share):
    mixed = with_ending_share(steps, share, seed=0)
    endings = [one for one in steps if one.done]
    assert [one for one in mixed if one.done] == endings
    others = len(mixed) - len(endings)
    assert others == max(1, round(len(endings) * (1 - share) / share))
    order = [steps.index(one) for one in mixed]
    assert order == sorted(order)
    few = len(endings) / len(steps) / 2
    assert with_ending_share(steps, few, seed=0) == steps, "there are more already"


def test_lessons_of_some_steps_are_those_among_the_lessons_of_all(lessons, recorded, tmp_path):
    wanted = {lesson.transition.id for lesson in lessons[1::3]}
    with open_store(tmp_path / "again.sqlite") as store:
        store.add(recorded)
        with store.snapshot() as memory:
            some = list(make_lessons(recorded, memory=memory, references=3, only=wanted))
    assert some == lessons[1::3]


def test_a_share_of_zero_takes_all_as_recorded(steps):
    assert with_ending_share(steps, 0.0, seed=0) == steps
    assert with_hard_share(steps, 0.0, seed=0) == steps
    hard = [one for one in steps if is_hard(one)]
    assert with_hard_share(hard, 0.5, seed=0) == hard, "there is no other kind to mix with"


def test_no_more_lessons_are_made_than_training_sees(recorded, monkeypatch):
    monkeypatch.setattr("dreamgym.train.lessons._MEASURED", 8)
    steps = [step for one in recorded for step in one.transitions()]
    made = []

    def make(some):
        made.append(len(some))
        wanted = {one.id for one in some}
        return make_lessons(recorded, memory=None, references=0, only=wanted)

    def used(tokens, seed=0):
        return as_many_as_used(steps, make, tokens=tokens, switches=SWITCHES, seed=seed)

    assert used(0) is steps and not made, "without an end to training, all are needed"
    assert used(10**6) is steps and made == [8]
    texts = list(lesson_texts(make(steps), style=Style.COMPACT, switches=SWITCHES))
    words = sum(len(re.findall(r"\w+", text)) for text in texts) / len(steps)
    few = used(round(words * 20))
    assert 15 <= len(few) <= 25 < len(steps)
    assert few == used(round(words * 20)) != used(round(words * 20), seed=1)
    assert [one for one in steps if one in few] == few, "in the order of the record"
