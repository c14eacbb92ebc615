"""The pool: who is fresh, active, mastered, retired, and that a checkpoint tells all of it."""

import json

import pytest
from made_groups import openings, real_task

from dreamgym.errors import ConfigError
from dreamgym.experience.task_prompt import Variation
from dreamgym.tasks.pool import Entry, Rules, TaskPool, TaskState
from dreamgym.tasks.refill import made_task
from dreamgym.tasks.value import Visit
from dreamgym.types import Split

RULES = Rules(mastery_visits=2, rest=5, feasible_visits=3, kept=4)
WON, LOST, MIXED = (1.0, 1.0), (0.0, 0.0), (1.0, 0.0)


def visited(entry, *visits, first=0):
    for number, visit in enumerate(visits, start=first):
        rewards = visit if isinstance(visit, tuple) else ()
        rest = {} if isinstance(visit, tuple) else visit
        entry = RULES.after(entry, Visit(number, rewards, **rest))
    return entry


def made_up():
    return Entry(made_task(Variation("go up", "hall"), real_task(0)), "hall")


def test_a_visit_is_remembered():
    entry = visited(Entry(real_task(0)), MIXED, WON)
    assert (entry.state, entry.visits, entry.wins) == (TaskState.ACTIVE, 2, 3)
    assert (entry.value, entry.valued, entry.last_seen) == (0.0, 1, 1)
    assert len(visited(entry, LOST, LOST, LOST).recent) == 4


def test_a_visit_without_outcomes_leaves_the_value_alone():
    entry = visited(Entry(real_task(0)), MIXED, {"unknown": 2}, (1.0,))
    assert (entry.value, entry.valued, entry.visits) == (0.25, 0, 3)


def test_what_is_always_solved_rests_and_comes_back():
    entry = visited(Entry(real_task(0)), MIXED, WON, WON)
    assert (entry.state, entry.since) == (TaskState.MASTERED, 2)
    assert "2 times" in entry.reason
    assert not RULES.live(entry, 6)
    assert RULES.live(entry, 7)
    still = visited(entry, WON, first=7)
    assert (still.state, still.since) == (TaskState.MASTERED, 7)
    forgotten = visited(entry, MIXED, first=7)
    assert (forgotten.state, forgotten.reason) == (TaskState.ACTIVE, "")


@pytest.mark.parametrize(
    ("visits", "reason"),
    [
        ((LOST, LOST, LOST), "infeasible"),
        (({"unknown": 2}, {"unknown": 2}, {"failed": 2}), "unknown"),
        (({"failed": 2}, {"failed": 2}, {"failed": 2}), "failed"),
        ((LOST, {"unknown": 1}, {"unknown": 2}), "infeasible"),
    ],
)
def test_a_made_up_task_that_nobody_solves_is_retired(visits, reason):
    assert visited(made_up(), *visits[:2]).state is TaskState.ACTIVE
    gone = visited(made_up(), *visits)
    assert (gone.state, gone.reason, gone.since) == (TaskState.RETIRED, reason, 2)
    assert not RULES.live(gone, 10_000)


def test_neither_a_real_task_nor_one_that_was_solved_once_is_retired():
    assert visited(Entry(real_task(0)), *[LOST] * 9).state is TaskState.ACTIVE
    assert visited(made_up(), MIXED, *[LOST] * 9).state is TaskState.ACTIVE


def test_tasks_of_other_splits_are_refused():
    with pytest.raises(ConfigError, match="dev split"):
        TaskPool([real_task(0), real_task(1, Split.DEV)])
    with pytest.raises(ConfigError, match="test split: no task is made from it"):
        made_task(Variation("a", "b"), real_task(1, Split.TEST))
    with pytest.raises(ConfigError, match="pool is empty"):
        TaskPool([])


def test_a_checkpoint_tells_all(tmp_path):
    pool = TaskPool([real_task(number) for number in range(3)], openings(2))
    assert pool["house#0"].task.goal.startswith("bring")
    assert not pool["house#2"].text
    pool.put(visited(pool["house#1"], MIXED, WON, WON))
    pool.put(visited(made_up(), LOST, {"failed": 3}))
    again = TaskPool([real_task(number) for number in range(3)], openings(2))
    again.restore(json.loads(json.dumps(pool.state())))
    assert list(again) == list(pool)
    other = TaskPool([real_task(9)])
    with pytest.raises(ConfigError, match="knows house#1"):
        other.restore(pool.state())
    with pytest.raises(ConfigError, match="fewer than the rules"):
        Rules(kept=1)
