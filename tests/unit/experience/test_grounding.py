"""Rules that refuse, and what they learn from records."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_states import STEPS
from small_house import GOAL, OPENING, page, transition
from test_experience_prompt import recorded

from dreamgym.experience.grounding import OFTEN, PAIRED, TRIED, Grounding, KnownKinds, malformed
from dreamgym.experience.phrases import cut, mentions, places
from dreamgym.replay.lookup import Hit
from dreamgym.types import Origin

SEEN = (GOAL, OPENING)


@pytest.mark.parametrize(
    ("action", "kind", "phrases"),
    [
        ("take coin", "take _", ("coin",)),
        ("put the red cup in box", "put _ in _", ("red cup", "box")),
        ("go to drawer 1", "go to _", ("drawer 1",)),
        ("look", "look", ()),
        ("Open door to SOUTH", "open _ to _", ("door", "south")),
        ("", "", ()),
        ("take from", "take from", ()),
    ],
)
def test_actions_are_cut_into_kind_and_phrases(action, kind, phrases):
    parts = cut(action)
    assert (parts.kind, parts.phrases) == (kind, phrases)


def test_phrases_are_found_as_whole_words():
    assert mentions("a red Coin (old)", "coin")
    assert not mentions("coinage", "coin")
    assert places(["hall", "box: coin", "coin"], "coin") == (1, 2)


def test_kinds_free_phrases_and_refusal_words_come_from_records():
    known = KnownKinds.from_transitions(
        [
            *[transition(OPENING, "move west")] * OFTEN,
            transition(OPENING, "take cup"),
            transition(OPENING, "dance"),
            transition(OPENING, "take moon"),
        ]
    )
    assert known == KnownKinds(
        frozenset({"move _", "take _"}),
        frozenset(),
        frozenset({"move _"}),
        ("no",),
        frozenset(),
        frozenset({"move _"}),
        frozenset({"move _"}),
        frozenset({""}),
        frozenset({"west"}),
    )


def test_half_a_name_is_refused_where_only_whole_names_ever_worked():
    state = "laundry\nwashing machine open: empty; dirty sheath dress; dirty hat"
    worked = [
        step_of(state, "take dirty hat"),
        step_of(state, "take dirty sheath dress"),
        step_of(state, "take washing machine"),
    ]
    known = KnownKinds.from_transitions(worked * OFTEN)
    assert known.beside == {"", "open"}
    rules = Grounding(known)

    def rule(action):
        found = rules.refusal(action, seen=[state], references=())
        return found and found.rule

    assert rule("take dirty hat") is None
    assert rule("take washing machine") is None, "that it is open is no part of its name"
    assert rule("take dirty") == "half-named"
    assert rule("take sheath dress") == "half-named"
    lenient = [*worked, step_of(state, "take sheath dress")]
    rules = Grounding(KnownKinds.from_transitions(lenient * OFTEN))
    assert rule("take sheath dress") is None, "half a name has worked here"


def test_what_is_never_in_sight_has_no_half_names():
    state = "You stand before a cabinet. All shut."
    known = KnownKinds.from_transitions([step_of(state, "open top drawer")] * OFTEN)
    assert not known.in_full
    rules = Grounding(known)
    assert rules.refusal("open top drawer", seen=[state], references=()) is None


def test_what_never_worked_where_things_stand_so_is_refused():
    closed, open_ = "hall\nsafe: closed; hat", "hall\nsafe open: cup; hat"
    steps = [
        step_of(closed, "open safe"),
        step_of(open_, "take cup"),
        *[replace(step_of(open_, "open safe"), refused=True)] * TRIED,
        *[replace(step_of(closed, "open hat"), refused=True)] * (TRIED - 1),
    ]
    rules = Grounding(KnownKinds.from_transitions(steps))

    def rule(state, action):
        found = rules.refusal(action, seen=["goal", state], references=())
        return found.rule if found else None

    other = "attic\ntrunk open: rope; coat"
    assert rule(other, "open trunk") == "out-of-place"
    assert rule("attic\ntrunk: closed; coat", "open trunk") is None
    assert rule(other, "open coat") is None, "tried too seldom to make a rule of it"
    assert Grounding(rules.known, here=False).refusal(
        "open trunk", seen=["goal", other], references=()
    ) is None  # fmt: skip


def step_of(state, action):
    """Return a step that was carried out and left everything as it was."""
    return replace(transition(OPENING, "take cup"), state=state, action=action, next_state=state)


def test_a_signposted_kind_leads_where_it_says():
    known = KnownKinds.from_transitions([transition(OPENING, "move west")] * OFTEN)
    assert not known.misleads(OPENING, "move west", page("hall"))
    assert known.misleads(OPENING, "move west", page("garden"))
    assert not known.misleads(OPENING, "take cup", page("garden")), "nothing is known of that kind"


def test_rules_by_name():
    kinds = frozenset({"take _", "look _", "put _ in _", "move _"})
    known = KnownKinds(kinds, frozenset({"around"}), frozenset({"move _"}), ("no",))
    rules = Grounding(known)

    def rule(action, *, grounding=rules, references=()):
        found = grounding.refusal(action, seen=SEEN, references=references)
        return found and found.rule

    assert rule("take cup") is None
    assert rule("take coin") is None, "the goal mentions it"
    assert rule("look around") is None, "it worked before without being in sight"
    assert rule("take moon") == "nothing-known"
    assert rule("put cup in moon") == "nothing-known"
    assert rule("put cup in moon", grounding=Grounding(known, every=False)) is None
    assert rule("eat cup") == "unseen-kind"
    assert rule("move west") is None
    assert rule("move coin") == "not-here"
    assert rule("move coin", grounding=Grounding(known, here=False)) is None
    assert rule("eat cup", grounding=Grounding()) is None
    assert rule("") == "malformed"
    told = Hit(transition("garden\nrake", "take cup"), 0.9, 1)
    assert rule("take rake") == "nothing-known"
    assert rule("take rake", references=(told,)) is None


def test_a_refused_reference_proves_nothing_about_its_action():
    tried = Hit(transition(OPENING, "take moon"), 0.9, 1)
    found = Grounding().refusal("take moon", seen=SEEN, references=(tried,))
    assert found is not None
    assert found.origin is Origin.GROUNDING


@given(st.text())
def test_any_text_is_judged(action):
    wrong = malformed(action)
    if not action.strip() or "<" in action or "\n" in action.strip():
        assert wrong


def test_recorded_steps_that_worked_are_never_refused_by_rule():
    """Grounding may only take away what reality takes away too."""
    steps = [recorded(number, step) for number, step in enumerate(STEPS)]
    accepted = refused = 0
    for family in {one.env for one in steps}:
        mine = [one for one in steps if one.env == family]
        rules = Grounding(KnownKinds.from_transitions(mine))
        for one in mine:
            # What was seen before in the same episode counts as seen.
            seen = [
                one.goal,
                *(o.state for o in mine if o.task_id == one.task_id and o.index <= one.index),
            ]
            found = rules.refusal(one.action, seen=seen, references=())
            if one.refused:
                refused += found is not None
            else:
                assert found is None, (one.action, found)
                accepted += 1
    assert accepted > 100
    assert refused > 10


def test_things_that_never_went_together_are_refused_where_they_stand_right():
    state = "hall\nsink: empty; shelf: empty\ncarrying: pillow 1"
    steps = [
        step_of("hall\nsink: empty; shelf: empty\ncarrying: cup 1", "put cup 1 in sink"),
        step_of(state, "put pillow 1 in shelf"),
        *[replace(step_of(state, "put pillow 1 in sink"), refused=True)] * PAIRED,
    ]
    rules = Grounding(KnownKinds.from_transitions(steps))
    found = rules.refusal("put pillow 1 in sink", seen=["goal", state], references=())
    assert found is not None
    assert (found.rule, found.why) == ("never-together", "pillow and sink never went together")
    assert rules.refusal("put pillow 1 in shelf", seen=["goal", state], references=()) is None
