"""What is on record about a task comes before what merely resembles it."""

import asyncio
from dataclasses import replace

from small_house import GOAL, OPENING, TASK, page, transition

from dreamgym.experience.edit import Edit
from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.ledger import Ledger, Pages, resolve, shorten
from dreamgym.experience.recall import LookUps, Records, TaskRecord, joined
from dreamgym.replay.lookup import Hit, Query


def test_the_same_action_in_the_same_state_is_the_most_alike():
    here = transition(OPENING, "move west")
    record = TaskRecord([transition(OPENING, "take cup"), here, here])
    (found,) = record.similar(OPENING, "move west", most=2)
    assert (found.transition, found.similarity) == (here, 1.0)


def test_another_page_says_nothing_about_this_one():
    record = TaskRecord([transition(OPENING, "move west")])
    assert record.similar(page("garden"), "move west", most=2) == ()


def test_references_are_joined_without_repeats_and_own_steps_stay_first():
    own = TaskRecord([transition(OPENING, "move west")]).similar(OPENING, "move west", most=2)
    twin = Hit(transition(OPENING, "move west", task_id="house#1"), 1.0, 1)
    other = Hit(transition(OPENING, "take cup", task_id="house#1"), 0.9, 1)
    assert joined(own, (twin, other), k=3) == (*own, other)
    assert joined(own, (twin, other), k=1) == own


def test_pages_on_record_are_known_wherever_they_were_seen_from():
    record = TaskRecord([transition(OPENING, "move west")])
    pages = record.pages(OPENING, (), task_id="house#0")
    assert pages["hall"].seen_by(()) == page("hall")


def test_an_empty_place_stays_on_record_for_one_who_carries_nothing():
    middle, empty = "middle of the room\ncarrying: nothing", "at shelf: nothing\ncarrying: nothing"
    record = TaskRecord([replace(transition(OPENING, "move west"), state=middle, next_state=empty)])
    assert record.pages(middle, (), task_id="house#0")["at shelf"].lines == (
        "at shelf: nothing", None,
    )  # fmt: skip


def test_a_memory_without_a_record_of_tasks_is_no_mistake():
    assert Records().of(None, "house#0", None).similar(OPENING, "move west", most=1) == ()


class Recorded:
    """A memory that holds what happened in one task."""

    def __init__(self, *steps):
        self.steps = steps

    def search(self, state, action, *, k, exclude_trajectory=None):
        return ()

    def recall(self, task_id, *, exclude_trajectory=None):
        return self.steps if task_id == "house#0" else ()


WALK = Recorded(transition(OPENING, "move west"), transition(page("garden"), "take coin"))


def made_up(first_state, goal=GOAL, parents=("other#1", "house#0")):
    return replace(TASK, id="house#dreamt", goal=goal, first_state=first_state, parents=parents)


def test_a_made_up_task_that_begins_on_a_recorded_page_is_in_that_world():
    records, begun = Records(), made_up(page("hall", ["map"]))
    record = records.of_task(WALK, begun, None)
    assert records.at_home(WALK, begun)
    assert set(record.pages(begun.first_state, (), task_id=begun.id)) == {
        "kitchen",
        "hall",
        "garden",
    }
    (step,) = record.similar(page("garden"), "take coin", most=1)
    assert step.transition.task_id == begun.id
    assert step.transition.success


def test_another_goal_leaves_out_how_the_old_one_ended():
    other = made_up(page("hall"), goal="take the rake")
    record = Records().of_task(WALK, other, None)
    assert record.similar(page("garden"), "take coin", most=1) == ()
    assert record.similar(OPENING, "move west", most=1)


def test_a_made_up_task_that_begins_elsewhere_has_a_world_of_its_own():
    for strange in ("hall\ncoin\neast: kitchen", "cellar\nrope"):
        task = made_up(strange)
        assert not Records().at_home(WALK, task)
        assert Records().of_task(WALK, task, None).pages(strange, (), task_id=task.id) == {}
    assert not Records().at_home(WALK, made_up(page("hall"), parents=()))
    # A task that was not made up has its own record, first state or not.
    assert Records().of_task(WALK, TASK, None).similar(OPENING, "move west", most=1)


def test_which_pages_may_be_bare_names_is_read_off_the_records():
    house = KnownKinds.from_transitions([transition(OPENING, "move west")])
    assert house.bare == frozenset()
    assert house.must_be_on_record(OPENING, "hall") == "hall"
    assert house.must_be_on_record(OPENING, page("hall")) == ""
    assert KnownKinds.from_transitions([]).must_be_on_record(OPENING, "hall") == ""


MAP = "map: hall - kitchen; hall - garden"


def test_what_was_said_at_length_is_told_by_its_heading():
    ledger = Ledger()
    ledger.show(f"{OPENING}\n> {MAP}")
    pages = Pages(ledger)
    short = shorten(Edit(said=(MAP, "taken")), OPENING, pages=pages)
    assert short.said == ("map: ...", "taken")
    assert resolve(short, OPENING, pages=pages)[0] == f"{OPENING}\n> {MAP}\n> taken"


def test_what_nobody_has_said_is_not_cut_and_not_made_up():
    pages = Pages(Ledger())
    assert shorten(Edit(said=(MAP,)), OPENING, pages=pages).said == (MAP,)
    assert resolve(Edit(said=("map: ...",)), OPENING, pages=pages)[0].endswith("> map: ...")


def test_a_heading_with_two_contents_is_not_on_record():
    one = transition(OPENING, "move west")
    told = [replace(one, next_state=f"{OPENING}\n> {words}") for words in (MAP, f"{MAP}; x - y")]
    assert TaskRecord(told[:1]).told == {"map": MAP}
    assert TaskRecord(told).told == {}


class Library:
    """A memory that counts how often it is asked."""

    def __init__(self, *hits):
        self.hits, self.asked = hits, []

    def search(self, state, action, *, k, exclude_trajectory=None):
        raise AssertionError("one by one")

    def search_batch(self, queries, *, k):
        self.asked.append(len(queries))
        return [self.hits[:k] for _ in queries]


def test_who_asks_at_the_same_moment_is_answered_together():
    hit = Hit(transition(OPENING, "take cup", task_id="house#1"), 0.9, 1)
    library, look_ups = Library(hit), LookUps(2)

    async def ask(*actions):
        record = TaskRecord(())
        asked = [look_ups.find(library, record, Query(OPENING, action)) for action in actions]
        return await asyncio.gather(*asked)

    assert asyncio.run(ask("take cup", "move west", "take cup")) == [(hit,)] * 3
    assert asyncio.run(ask("take cup", "dance")) == [(hit,)] * 2
    assert library.asked == [2, 1], "equal questions are asked once"
    look_ups.clear()
    asyncio.run(ask("take cup"))
    assert library.asked == [2, 1, 1]


def test_an_untouched_look_counts_more_than_one_that_the_agent_changed():
    touched = replace(transition(OPENING, "move west"), trajectory_id="a", index=0)
    touched = replace(touched, state=page("hall"), next_state="hall\nmud", index=1)
    clean = replace(transition(OPENING, "move west"), trajectory_id="b", index=5)
    pages = TaskRecord([touched, clean]).pages(OPENING, (), task_id="house#0")
    assert pages["hall"].seen_by(()) == page("hall")


def test_a_place_is_on_record_by_its_own_name_as_it_was_first_found():
    shut, opened = (f"at drawer 1 {look}\ncarrying: nothing" for look in ("closed", "open: key 1"))
    came = replace(transition(OPENING, "move west"), state=page("hall"), next_state=shut, index=0)
    open_it = replace(came, state=shut, next_state=opened, index=1)
    pages = TaskRecord([open_it, came]).pages(OPENING, (), task_id="house#0")
    assert pages["drawer 1"] == pages["at drawer 1 closed"]
    assert pages["at drawer 1 open"].seen_by(("carrying: nothing",)) == opened
