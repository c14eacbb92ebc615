"""Lessons about tasks: what is asked, what is right, and how many there are."""

import pytest

from dreamgym.experience.prompt import MARKS, Style, Switches
from dreamgym.experience.task_memory import known_tasks
from dreamgym.experience.task_prompt import Example, Job, read_one_variation, read_variations
from dreamgym.models.samples import Sample
from dreamgym.models.tokenizer import END, train_word_tokenizer
from dreamgym.train.lessons import TASK_SPANS, encode, lesson_texts, packed
from dreamgym.train.task_lessons import make_task_lessons, task_lesson_count, task_question
from played_corridors import played


@pytest.fixture
def known():
    return known_tasks([played(number) for number in range(8)])


def test_the_share_is_one_of_all_lessons():
    assert task_lesson_count(900, 0.1) == 100
    assert task_lesson_count(900, 0.0) == 0


def test_tasks_and_jobs_take_turns(known):
    lessons = make_task_lessons(known, others=known, count=32, seed=0)
    jobs = [lesson.job for lesson in lessons]
    assert jobs.count(Job.FIRST_STATE) == jobs.count(Job.VARIATION) == 16
    about = {(lesson.answer.goal, lesson.source.first_state) for lesson in lessons}
    assert about == {(one.goal, one.first_state) for one in known.values()}
    assert lessons == make_task_lessons(known, others=known, count=32, seed=0)
    assert lessons != make_task_lessons(known, others=known, count=32, seed=1)


def test_a_variation_begins_elsewhere_in_the_same_world(known):
    lessons = make_task_lessons(known, others=known, count=64, seed=0)
    for lesson in lessons:
        if lesson.job is Job.VARIATION:
            assert lesson.answer.first_state in lesson.source.places
            assert lesson.answer.goal == lesson.source.goal
            assert lesson.keep_goal
            prompt, answer = task_question(lesson, style=Style.COMPACT)
            assert prompt.endswith(f"<goal>{lesson.source.goal}<page>")
            read = read_one_variation(answer, lesson.source, keep_goal=True)
            assert read == lesson.answer


def test_where_goals_may_vary_the_goal_is_part_of_the_answer(known):
    lessons = make_task_lessons(known, others=known, count=64, seed=0, vary_goals=True)
    varied = [lesson for lesson in lessons if lesson.job is Job.VARIATION]
    for lesson in varied:
        prompt, answer = task_question(lesson, style=Style.COMPACT)
        assert prompt.endswith("<goal>")
        assert answer.startswith(f"{lesson.answer.goal}<page>")
    starts = {one.answer.first_state == one.source.first_state for one in varied}
    assert starts == {True, False}


def test_where_a_task_is_its_first_state_a_near_task_is_the_source():
    flat = {str(n): Example(f"sort {n} cups", f"table\ncup {n}") for n in range(5)}
    lessons = make_task_lessons(flat, others=flat, count=20, seed=0)
    for lesson in lessons:
        shown = (lesson.source, *lesson.examples)
        if lesson.job is Job.VARIATION:
            assert lesson.source.goal != lesson.answer.goal
            _, answer = task_question(lesson, style=Style.COMPACT)
            assert answer == f"{lesson.answer.goal}<page>{lesson.answer.first_state}<end>"
            assert lesson.answer not in shown
        else:
            assert lesson.answer.goal not in {one.goal for one in lesson.examples}


def test_one_task_alone_is_still_asked_how_it_opens():
    alone = {"0": Example("sort", "table\ncup")}
    lessons = make_task_lessons(alone, others=alone, count=2, seed=0)
    assert [lesson.job for lesson in lessons] == [Job.FIRST_STATE] * 2
    assert make_task_lessons({}, others={}, count=3, seed=0) == []


def test_the_answer_is_learnt_under_a_label_of_its_own(known):
    lessons = make_task_lessons(known, others=known, count=16, seed=0)
    texts = lesson_texts(lessons, style=Style.COMPACT, switches=Switches())
    tokenizer = train_word_tokenizer(texts, special=[mark for mark in MARKS if mark != END])
    label = list(TASK_SPANS).index("task") + 1
    for lesson in lessons:
        prompt, answer = task_question(lesson, style=Style.COMPACT)
        sample = encode(lesson, tokenizer, style=Style.COMPACT, switches=Switches())
        read = list(tokenizer.prompt_ids(prompt))
        learnt = list(tokenizer.encode(answer))
        assert list(sample.ids) == read + learnt
        assert list(sample.spans) == [0] * len(read) + [label] * len(learnt)
        assert sample.ids[-1] in tokenizer.end_ids


def test_chat_models_learn_the_same_tasks_in_their_own_form(known):
    for lesson in make_task_lessons(known, others=known, count=8, seed=0):
        prompt, answer = task_question(lesson, style=Style.FULL)
        assert [message.role for message in prompt] == ["system", "user"]
        if lesson.job is Job.VARIATION:
            assert read_variations(answer, count=1) == (lesson.answer,)
        else:
            assert answer == f"<state>\n{lesson.answer.first_state}\n</state>"


def test_short_lessons_are_packed_in_order_up_to_a_length():
    samples = [Sample((number,) * size, (4,) * size) for number, size in enumerate([3, 3, 2, 9, 1])]
    packs = packed(samples, length=6)
    assert [pack.ids for pack in packs] == [(0,) * 3 + (1,) * 3, (2,) * 2, (3,) * 9, (4,)]
    assert all(len(pack.ids) == len(pack.spans) for pack in packs)
    assert packed([], length=6) == []
