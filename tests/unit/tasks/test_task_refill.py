"""Refilling: what is asked, what becomes of each answer, and that it is all told."""

import asyncio
import json

import pytest
from made_groups import openings, real_task

from dreamgym.errors import ConfigError, JobNotTaught, LLMBudget, LLMTimeout
from dreamgym.experience.model import ExperienceModel
from dreamgym.llm.scripted import ScriptedLLM
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.tasks.customs import learn_customs
from dreamgym.tasks.gate import TaskGate
from dreamgym.tasks.makers import ModelMaker
from dreamgym.tasks.pool import TaskPool
from dreamgym.tasks.refill import Refill, RefillPlan
from dreamgym.types import Source, Split

POOL = tuple(TaskPool([real_task(number) for number in range(10)], openings(10)))
STATE = "study\nbox: empty\neast: garden\ncarrying: map"


def said(goal="bring the cup to the study", first_state=STATE):
    return json.dumps([{"goal": goal, "first_state": first_state}])


def refill(script, *, sources=1, at_home=lambda task: False, maker=None, **plan):
    """Refill once; returns the refill, what was added and all events."""
    events = []

    def note(name, **details):
        events.append({"event": name, **details})

    made = Refill(
        maker or ModelMaker(ExperienceModel(ScriptedLLM(script), retries=0)),
        TaskGate(learn_customs([one.as_opening() for one in POOL]), HashingEmbedder()),
        RefillPlan(**plan),
        at_home=at_home,
        seed=1,
        on_event=note,
    )
    added = asyncio.run(made.make(POOL[:sources], POOL, 4))
    return made, added, events


def test_a_good_variation_joins_with_all_that_is_known_of_it():
    made, (entry,), events = refill([said()])
    task = entry.task
    assert (task.source, task.split, task.parents) == (Source.DREAM, Split.TRAIN, ("house#0",))
    assert (task.goal, task.first_state, entry.opening) == (
        "bring the cup to the study", STATE, STATE,
    )  # fmt: skip
    assert task.id.startswith("house#dreamt-")
    assert events == [
        {"event": "task_added", "step": 4, "id": task.id, "source": "house#0", "at_home": False,
         "goal": task.goal, "first_state": STATE},
        {"event": "refill", "step": 4, "sources": 1, "made": 1, "added": 1},
    ]  # fmt: skip
    assert made.figures()["added"] == 1


def test_what_is_made_twice_joins_once():
    made, added, events = refill([said(), said()], sources=2)
    assert len(added) == 1
    assert made.figures()["rejected_duplicate"] == 1
    assert events[1]["event"] == "task_rejected"
    assert events[1]["goal"] == added[0].task.goal


def test_another_first_state_is_asked_for_once():
    _, (entry,), _ = refill([said(first_state="study"), f"<state>{STATE}</state>"])
    assert entry.opening == STATE
    made, added, events = refill([said(first_state="study"), "<state>attic</state>"])
    assert not added
    assert made.figures()["rejected_layout"] == 1
    assert events[0]["first_state"] == "attic"
    made, added, _ = refill([said(first_state="study"), LLMTimeout("late")])
    assert not added
    assert made.figures()["rejected_layout"] == 1


def test_what_cannot_be_read_is_counted_and_shown():
    made, added, events = refill(["no list at all"])
    assert not added
    assert made.figures()["rejected_unreadable"] == 1
    assert events[0]["reason"] == "unreadable"
    assert events[0]["text"] == "no list at all"


def test_a_maker_that_says_nothing_readable_is_given_up_and_told():
    made, _, events = refill(["no", LLMTimeout("late"), "no", "no"], patience=3)
    assert not made.given_up
    assert made.due(4)
    assert not made.due(5)
    for _ in range(2):
        assert asyncio.run(made.make(POOL[:1], POOL, 9)) == ()
    assert made.given_up
    assert not made.due(9)
    assert made.figures()["refill_failed"] == 1
    assert [one["event"] for one in events].count("refill_given_up") == 1
    assert "late" in next(one["why"] for one in events if one["event"] == "refill_failed")


class Untaught:
    async def vary(self, source, examples, *, count, seed):
        raise JobNotTaught("was not taught the job 'variation'")


def test_a_model_that_was_not_taught_to_vary_is_given_up_at_once():
    made, added, events = refill([], maker=Untaught())
    assert not added
    assert made.given_up
    assert "not taught" in events[0]["why"]
    assert events[-1]["event"] == "refill_given_up"


def test_a_spent_budget_stops_the_run():
    with pytest.raises(LLMBudget):
        refill([LLMBudget("spent")])


def test_at_home_only_the_same_world_is_compared():
    twin = POOL[3].as_opening()
    elsewhere = said(twin.task.goal, twin.observation.text)
    _, added, _ = refill([elsewhere])
    assert not added
    _, (entry,), events = refill([elsewhere], at_home=lambda task: True)
    assert entry.opening == twin.observation.text
    assert events[0]["at_home"]
    own = POOL[0].as_opening()
    made, added, _ = refill([said(own.task.goal, own.observation.text)], at_home=lambda task: True)
    assert not added
    assert made.figures()["rejected_duplicate"] == 1


def test_a_checkpoint_tells_counts_and_patience():
    made, _, _ = refill(["no"], patience=2)
    again, _, _ = refill([said()], patience=2)
    again.restore(json.loads(json.dumps(made.state())))
    assert again.figures() == made.figures()
    assert again.state() == made.state()


def test_wrong_plans_are_refused():
    with pytest.raises(ConfigError, match="every is 0"):
        RefillPlan(every=0)
    with pytest.raises(ConfigError, match="examples is -1"):
        RefillPlan(examples=-1)
