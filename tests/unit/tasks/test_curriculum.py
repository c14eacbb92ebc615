"""The curriculum: what is drawn and how often, what is learnt of it, what a checkpoint holds."""

import asyncio
import json
from collections import Counter

import pytest
from made_groups import group, opening_of, openings, real_task

from dreamgym.errors import ConfigError
from dreamgym.experience.task_prompt import Variation
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.tasks.clusters import TaskClusters
from dreamgym.tasks.curriculum import Curriculum, Mix
from dreamgym.tasks.customs import learn_customs
from dreamgym.tasks.gate import TaskGate
from dreamgym.tasks.pool import Entry, Rules, TaskPool, TaskState
from dreamgym.tasks.refill import Refill, RefillPlan, made_task
from dreamgym.tasks.value import Worth
from dreamgym.types import Source

ROOMS = ("shed", "cave", "barn", "loft", "mill", "tent", "dome", "yard", "pool", "well")


class Inventor:
    """Makes a new task at every call, as a model would: by seed."""

    async def vary(self, source, examples, *, count, seed):
        room = ROOMS[seed % len(ROOMS)]
        return (Variation(f"bring the cup to the {room}",
                          f"{room}\nbox: empty\neast: hall\ncarrying: map"),)  # fmt: skip

    async def open_anew(self, variation, examples, *, seed):
        return None


def curriculum(count=20, *, share=0.3, clusters=None, refill=None, most=64, events=None, **more):
    pool = TaskPool([real_task(number) for number in range(count)], openings(count))
    note = (lambda name, **details: events.append((name, details))) if events is not None else None
    maker = None
    if refill is not None:
        customs = learn_customs([one.as_opening() for one in pool], heard=[" ".join(ROOMS)])
        gate = TaskGate(customs, HashingEmbedder(), alike=1.0)
        tell = {"on_event": note} if note else {}
        maker = Refill(Inventor(), gate, refill, seed=3, **tell)
    return Curriculum(
        pool,
        mix=Mix(share, most),
        clusters=clusters,
        refill=maker,
        seed=3,
        **({"on_event": note} if note else {}),
        **more,
    )


def played(tasks, outcomes):
    return [group(task, outcomes(task)) for task in tasks]


def with_made(course, count):
    """Put made-up tasks into the pool."""
    for number in range(count):
        task = made_task(Variation(f"goal {number}", "hall"), real_task(0))
        course.pool.put(Entry(task, "hall"))
    return course


def test_the_share_of_made_up_tasks_is_at_most_lambda():
    course = with_made(curriculum(), 9)
    for step in range(10):
        drawn = course.draw(step, 10)
        assert len({task.id for task in drawn}) == 10
        assert sum(task.source is Source.DREAM for task in drawn) == 3
    assert not any(
        task.source is Source.DREAM for task in with_made(curriculum(share=0), 9).draw(0, 10)
    )
    few = with_made(curriculum(share=0.5), 2).draw(0, 10)
    assert sum(task.source is Source.DREAM for task in few) == 2


def test_the_same_past_draws_the_same_tasks():
    assert curriculum().draw(4, 6) == curriculum().draw(4, 6)
    assert any(curriculum().draw(step, 6) != curriculum().draw(0, 6) for step in range(1, 4))


def test_a_pool_that_is_too_small_is_gone_through_again():
    counts = Counter(task.id for task in curriculum(4).draw(0, 10))
    assert sorted(counts.values()) == [2, 2, 3, 3]


def test_tasks_of_high_value_are_drawn_more_often():
    course = curriculum(30, worth=Worth(half_life=1e9))
    half, never = {f"house#{n}" for n in range(10)}, {f"house#{n}" for n in range(10, 20)}
    course.observe(
        played([real_task(n) for n in range(20)], lambda task: "10" if task.id in half else "00")
    )
    counts = Counter(task.id for step in range(300) for task in course.draw(step, 3))
    hot, cold = sum(counts[one] for one in half), sum(counts[one] for one in never)
    unseen = sum(counts.values()) - hot - cold
    assert hot > 1.5 * unseen > 4 * cold > 0


def test_what_was_always_or_never_solved_comes_back():
    course = curriculum(10, worth=Worth(half_life=5), rules=Rules(mastery_visits=1, rest=8, kept=3))
    course.draw(0, 10)
    easy = {f"house#{n}" for n in range(5)}
    figures = course.observe(
        played([real_task(n) for n in range(10)], lambda task: "11" if task.id in easy else "00")
    )
    assert (figures["tasks/mastered"], figures["tasks/active"]) == (5, 5)
    assert not easy & {task.id for step in range(1, 8) for task in course.draw(step, 5)}
    assert easy <= {task.id for step in range(8, 40) for task in course.draw(step, 5)}
    # Where nothing else is left, also those that rest are drawn.
    assert len({task.id for task in course.draw(1, 10)}) == 10


def test_what_an_engine_tells_when_it_is_reset_is_kept():
    pool = TaskPool([real_task(0)])
    course = Curriculum(pool)
    assert course.pool["house#0"].text == ""
    course.observe([group(real_task(0), "f")])
    course.observe([group(real_task(0), "10")])
    assert course.pool["house#0"].opening == opening_of(0).observation.text
    assert course.draw(1, 1)[0].goal == opening_of(0).task.goal


def test_for_ppo_the_value_is_that_of_the_cluster():
    course = curriculum(14, clusters=TaskClusters(HashingEmbedder(), count=3))
    labels = TaskClusters(HashingEmbedder(), count=3).labels(tuple(course.pool))
    chosen = labels["house#0"]
    members = sorted(name for name, label in labels.items() if label == chosen)
    assert len(members) > 2
    course.draw(0, 1)
    # One episode each: no task has a value of its own, but their cluster has.
    outcomes = {members[0]: "1", members[1]: "0"}
    figures = course.observe([group(course.pool[name].task, one) for name, one in outcomes.items()])
    values = {row["id"]: row["value"] for row in course.rows()}
    assert values[members[0]] == values[members[2]] == 0.25
    assert figures["tasks/clusters"] == 3


def test_new_tasks_are_made_from_those_of_the_highest_value():
    events = []
    course = curriculum(refill=RefillPlan(every=2, sources=2), events=events)
    tasks = course.draw(0, 6)
    outcomes = {tasks[0].id: "1100", tasks[1].id: "1000", tasks[2].id: "1100"}
    course.observe(played(tasks, lambda task: outcomes.get(task.id, "0000")))
    assert asyncio.run(course.refill(0))["tasks/added"] == 0  # not yet time
    figures = asyncio.run(course.refill(1))
    made = [one for one in course.pool if one.synthetic]
    assert {one.task.parents for one in made} <= {(tasks[0].id,), (tasks[2].id,)}
    assert figures["tasks/added"] == figures["tasks/synthetic"] == len(made) > 0
    assert any(task.source is Source.DREAM for task in course.draw(2, 10))
    assert {"tasks/rejected_duplicate", "tasks/refill_failed", "tasks/fresh"} <= figures.keys()


def test_without_a_task_that_is_both_solved_and_failed_nothing_is_made():
    events = []
    course = curriculum(refill=RefillPlan(every=1), events=events)
    course.observe(played(course.draw(0, 6), lambda task: "00"))
    asyncio.run(course.refill(0))
    assert [name for name, _ in events] == ["refill_skipped"]


def test_the_least_worth_make_room_and_the_untried_stay():
    events = []
    course = with_made(curriculum(refill=RefillPlan(every=1, sources=3), most=3, events=events), 3)
    old = [one.task for one in course.pool if one.synthetic]
    course.observe([group(real_task(0), "10"), group(real_task(1), "10")])
    asyncio.run(course.refill(0))
    assert events[-1][0] == "refill_skipped"  # nobody has tried those that are there
    course.observe([group(old[0], "10"), group(old[1], "1110"), group(old[2], "1111111110")])
    asyncio.run(course.refill(1))
    gone = [one for one in course.pool if one.state is TaskState.RETIRED]
    assert {one.reason for one in gone} == {"crowded-out"}
    standing = [one for one in course.pool if one.synthetic and one not in gone]
    assert len(standing) == 3
    assert old[2] in [one.task for one in gone]
    assert ("task_retired", gone[0].task.id) in [(n, d.get("id")) for n, d in events]


def test_a_made_up_task_that_nobody_solves_is_told_with_its_text():
    events = []
    course = with_made(curriculum(events=events), 1)
    task = next(one.task for one in course.pool if one.synthetic)
    for step in range(3):
        course.draw(step, 2)
        figures = course.observe([group(task, "0u")])
    assert figures["tasks/retired_infeasible"] == 1
    assert figures["tasks/success_synthetic"] == 0
    name, told = events[0]
    assert name == "task_retired"
    assert (told["id"], told["reason"], told["goal"], told["first_state"], told["step"]) == (
        task.id, "infeasible", "goal 0", "hall", 2,
    )  # fmt: skip


def practised(course, steps):
    """Play steps whose outcomes depend on the task; returns all that was drawn."""
    drawn, kinds = [], ("1111", "1100", "0000", "1uf0")
    for step in steps:
        tasks = course.draw(step, 8)
        course.observe(played(tasks, lambda task: kinds[len(task.id + task.goal) % 4]))
        asyncio.run(course.refill(step))
        drawn.append(tasks)
    return drawn


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_course_that_goes_on_from_a_checkpoint_is_the_same_course(stop, clustered):
    def new():
        clusters = TaskClusters(HashingEmbedder(), count=4) if clustered else None
        return curriculum(refill=RefillPlan(every=2, sources=2), clusters=clusters)

    whole = new()
    drawn = practised(whole, range(10))
    killed = new()
    practised(killed, range(stop))
    state = json.loads(json.dumps(killed.state()))
    again = new()
    again.restore(state)
    assert practised(again, range(stop, 10)) == drawn[stop:]
    assert again.state() == whole.state()
    assert again.rows() == whole.rows()
    assert any(row["source"] == "dream" for row in whole.rows())


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="synthetic_share"):
        Mix(1.5)
    with pytest.raises(ConfigError, match="most_synthetic"):
        Mix(0.5, 0)
    with pytest.raises(ConfigError, match="another curriculum"):
        curriculum().restore(curriculum(refill=RefillPlan()).state())
