"""The vary job: which tasks are varied, what the model is shown, what came of it."""

import asyncio
from dataclasses import replace

import pytest

from dreamgym.config import DreamConfig
from dreamgym.dreams import card_for, dream_over
from dreamgym.errors import ConfigError, JobNotTaught
from dreamgym.experience.prompt import Style
from dreamgym.experience.task_prompt import Job
from dreamgym.jobs.vary import chosen_tasks, vary_tasks
from dreamgym.llm import ScriptedLLM
from dreamgym.replay import open_store
from dreamgym.states import page_name
from dreamgym.types import Split
from played_corridors import ENV, played


@pytest.fixture
def open_dream(tmp_path):
    """Return a function that opens a dream of six corridors over a script."""
    path = tmp_path / "store.sqlite"
    with open_store(path) as store:
        store.add([played(number) for number in range(6)] + [played(0, split=Split.DEV)])
    opened = []

    def open_over(*replies, jobs=tuple(Job)):
        card = replace(card_for(path, ENV, DreamConfig()), style=Style.COMPACT, jobs=jobs)
        opened.append(dream_over(ScriptedLLM(list(replies)), card, config=DreamConfig()))
        return opened[-1]

    yield open_over
    for dream in opened:
        asyncio.run(dream.close())


def vary(dream, tasks, **options):
    return asyncio.run(vary_tasks(dream, tasks, seed=0, **options))


def test_a_variation_begins_in_a_place_that_episodes_came_to(open_dream):
    source = played(2)
    there = source.steps[-2].result.observation.text
    dream = open_dream(page_name(there))
    (one,) = vary(dream, chosen_tasks(dream, [source.task.id], most=1), count=1)
    assert one.source.first_state == source.opening.text
    assert len(one.source.places) == 2
    (variation,) = one.variations
    assert (variation.goal, variation.first_state) == ("take the coin", there)
    assert one.is_on_record(variation)


def test_answers_that_cannot_be_read_are_told_and_the_others_kept(open_dream):
    first, second = played(0), played(1)
    elsewhere = page_name(second.steps[-1].result.observation.text)
    dream = open_dream("nowhere", "nowhere", "nowhere", elsewhere)
    tasks = chosen_tasks(dream, [first.task.id, second.task.id], most=1)
    bad, good = vary(dream, tasks, count=1)
    assert bad.variations == ()
    assert "no place called 'nowhere'" in bad.trouble
    assert [page_name(one.first_state) for one in good.variations] == [elsewhere]


def test_without_names_tasks_are_taken_evenly_from_the_training_split(open_dream):
    dream = open_dream()
    assert [task.key for task in chosen_tasks(dream, (), most=3)] == ["0", "2", "4"]
    assert len(chosen_tasks(dream, (), most=99)) == 6


def test_a_task_of_another_split_is_not_varied(open_dream):
    with pytest.raises(ConfigError, match="the training split of .* has no task"):
        chosen_tasks(open_dream(), [played(0, split=Split.DEV).task.id], most=1)


def test_a_dream_that_was_not_taught_says_so(open_dream):
    dream = open_dream(jobs=(Job.STEP,))
    with pytest.raises(JobNotTaught, match="fit.task_share"):
        vary(dream, chosen_tasks(dream, (), most=1), count=1)
