"""What is on record about a task comes before what merely resembles it."""

from small_house import OPENING, page, transition

from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.recall import Records, TaskRecord, joined
from dreamgym.replay.lookup import Hit


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


def test_a_memory_without_a_record_of_tasks_is_no_mistake():
    assert Records().of(None, "house#0", None).similar(OPENING, "move west", most=1) == ()


def test_which_pages_may_be_bare_names_is_read_off_the_records():
    house = KnownKinds.from_transitions([transition(OPENING, "move west")])
    assert house.bare == frozenset()
    assert house.must_be_on_record(OPENING, "hall") == "hall"
    assert house.must_be_on_record(OPENING, page("hall")) == ""
    assert KnownKinds.from_transitions([]).must_be_on_record(OPENING, "hall") == ""
