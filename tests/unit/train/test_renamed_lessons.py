"""Lessons under other names stay the lessons that they were."""

import random
from dataclasses import replace

import pytest

from dreamgym.experience.annotate import explain
from dreamgym.experience.prompt import Style, Switches, step_prompt
from dreamgym.replay import open_store
from dreamgym.train.lessons import make_lessons
from dreamgym.train.renamed_lessons import rename, renamed, with_renamed_share
from dreamgym.train.renaming import Names, Renamer, find_names
from played_corridors import played

SHOWN = Switches()


@pytest.fixture(scope="module")
def recorded():
    return [played(number) for number in range(20)] + [played(0, name="again")]


@pytest.fixture(scope="module")
def names(recorded):
    return find_names(recorded)


@pytest.fixture(scope="module")
def lessons(recorded, tmp_path_factory):
    with open_store(tmp_path_factory.mktemp("store") / "store.sqlite") as store:
        store.add(recorded)
        with store.snapshot() as memory:
            return list(make_lessons(recorded, memory=memory, references=3))


def prompt(lesson):
    return step_prompt(lesson.query, style=Style.COMPACT, switches=SHOWN)


def test_rooms_and_things_are_names(names):
    classes = [set(group) for group in names.classes]
    assert any({"hall", "kitchen", "study"} <= group for group in classes)
    assert any({"cup", "lamp", "rug"} <= group for group in classes)


@pytest.mark.parametrize("seed", range(3))
def test_prompt_references_and_answer_are_renamed_alike(lessons, names, seed):
    rng = random.Random(seed)
    changed = 0
    for lesson in lessons:
        found = renamed(lesson, names, rng)
        changed += prompt(found) != prompt(lesson)
        one = found.transition
        # Explained anew, the renamed step gets the renamed explanation.
        assert explain(one) == found.answer.reasoning
        assert (found.query.state, found.query.action) == (one.state, one.action)
        same = [ref.transition.task_id == one.task_id for ref in lesson.query.references]
        assert same == [ref.transition.task_id == one.task_id for ref in found.query.references]
    assert changed > 0.9 * len(lessons)


def test_the_prompt_of_a_renamed_lesson_is_the_renamed_prompt(lessons):
    renamer = Renamer({"hall": "study", "study": "hall", "cup": "lamp", "lamp": "cup"})
    for lesson in lessons:
        assert prompt(rename(lesson, renamer)) == renamer.text(prompt(lesson))


def test_names_that_run_into_each_other_leave_the_lesson_alone(lessons):
    lesson = lessons[0]
    state = lesson.query.state + "\nred; cup"
    merged = replace(lesson, query=replace(lesson.query, state=f"{state}; red cup"))
    clash = Names((("red cup", "cup"),))
    for seed in range(8):
        found = renamed(merged, clash, random.Random(seed))
        assert rename(found, Renamer({})) in (
            rename(merged, Renamer({})),
            rename(merged, Renamer({"red cup": "cup", "cup": "red cup"})),
        )


def test_a_share_is_renamed_and_the_same_one_each_time(lessons, names):
    half = with_renamed_share(lessons, names, 0.5, seed=1)
    changed = sum(prompt(one) != prompt(other) for one, other in zip(half, lessons, strict=True))
    assert 0.3 * len(lessons) < changed < 0.7 * len(lessons)
    assert half == with_renamed_share(lessons, names, 0.5, seed=1)
    assert half != with_renamed_share(lessons, names, 0.5, seed=2)
    assert with_renamed_share(lessons, names, 0.0, seed=1) == list(lessons)
    assert with_renamed_share(lessons, Names(()), 0.5, seed=1) == list(lessons)
