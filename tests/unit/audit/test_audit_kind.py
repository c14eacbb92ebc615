"""Kinds of tasks, read off goals."""

from dreamgym.audit.kind import MOST, OTHER, kinds_of
from dreamgym.types import Split, Task


def tasks(*goals, env="alf/x?seed=1"):
    return [Task(str(n), env, str(n), Split.DEV, goal=goal) for n, goal in enumerate(goals)]


def test_what_goals_share_is_their_kind():
    found = kinds_of(
        tasks(
            "put a hot apple in the fridge", "put a hot egg in the sink",
            "clean some mug", "clean some red plate",
        )
    )  # fmt: skip
    assert list(found.values()) == [
        "alf/x: put a hot _ in the _",
        "alf/x: put a hot _ in the _",
        "alf/x: clean some _",
        "alf/x: clean some _",
    ]


def test_a_goal_may_begin_with_a_thing():
    assert set(kinds_of(tasks("apple goes home", "pear goes home")).values()) == {
        "alf/x: _ goes home"
    }


def test_tasks_without_goals_are_told_by_their_game():
    assert set(kinds_of(tasks("", "")).values()) == {"alf/x"}


def test_rare_kinds_go_together():
    goals = [f"word{n} it" for n in range(MOST + 3) for _ in range(3)]
    found = kinds_of(tasks(*goals))
    assert OTHER in found.values()
    assert len(set(found.values())) == MOST + 1
