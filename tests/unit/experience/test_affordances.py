"""What demonstrations tell about what can be done in a state."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.errors import ConfigError
from dreamgym.experience.affordances import Affordances, affordances_from, learn_affordances
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

CLASSES = (("salt", "sugar", "black pepper", "pepper"), ("north", "south"))
WALK = [
    ("kitchen\nshelf: salt; box: empty\nnorth: hall", "take salt", False),
    ("kitchen\nshelf: empty; box: empty\nnorth: hall\ncarrying: salt", "put salt in box", False),
    ("kitchen\nbox: salt\nnorth: hall", "look around", False),
    ("kitchen\nbox: salt\nnorth: hall", "eat box", True),
    ("kitchen\nbox: salt\nnorth: hall", "open the box", False),
    ("kitchen\nbox: salt\nnorth: hall", "move north", False),
]


def walk(turns=WALK):
    seen = [Observation(state) for state, _, _ in turns] + [Observation("hall")]
    steps = tuple(
        Step(Action(action), StepResult(now, refused=refused))
        for (_, action, refused), now in zip(turns, seen[1:], strict=True)
    )
    task = Task("t", "e", "1", Split.TRAIN)
    made_by = Provenance(Source.REAL, "expert")
    return Trajectory("w", task, seen[0], steps, StopReason.STEP_LIMIT, made_by)


KNOWN = learn_affordances([walk()], CLASSES)


def test_a_state_suggests_what_was_done_with_its_like():
    state = "cellar\nshelf: black pepper, sugar; box: empty\nsouth: kitchen\ncarrying: salt"
    assert KNOWN.candidates(state) == (
        "look around",
        "move south",
        "put salt in box",
        "take black pepper",
        "take sugar",
    )


def test_what_was_refused_or_would_lose_its_article_is_no_kind():
    assert [frame.kind for frame in KNOWN.frames] == ["look _", "move _", "put _ in _", "take _"]


def test_what_the_world_says_is_not_in_sight():
    assert KNOWN.candidates("hall\n> the salt is to the north") == ("look around",)


def test_things_with_numbers_keep_them():
    known = learn_affordances([walk([("at bed 1: cup 2", "take cup 2 from bed 1", False)])])
    assert known.candidates("at bed 3: cup 1, cup 4") == (
        "take cup 1 from bed 3",
        "take cup 4 from bed 3",
    )


HOUSE = [
    ("at bed 1\ncarrying: nothing\nplaces: bed 1, safe 1, shelf 1", "go to safe 1", False),
    ("at safe 1 closed\ncarrying: nothing\nplaces: bed 1, safe 1, shelf 1", "open safe 1", False),
    (
        "at safe 1 open: cup 1\ncarrying: nothing\nplaces: bed 1, safe 1, shelf 1",
        "take cup 1 from safe 1",
        False,
    ),
    ("at safe 1 open: empty\ncarrying: cup 1\nplaces: bed 1, safe 1", "go to bed 1", False),
    ("at bed 1: pen 1\ncarrying: cup 1\nplaces: bed 1, safe 1", "move cup 1 to bed 1", False),
]


def test_where_a_thing_stands_says_what_can_be_done_with_it():
    known = learn_affordances([walk(HOUSE)], [("cup", "pen"), ("bed", "safe", "shelf")])
    assert known.candidates("at safe 2 closed\ncarrying: pen 1\nplaces: safe 2, shelf 1") == (
        "go to shelf 1",
        "open safe 2",
    )
    assert known.candidates("at shelf 1: cup 3\ncarrying: pen 1\nplaces: safe 2, shelf 1") == (
        "go to safe 2",
        "move pen 1 to shelf 1",
    )


def test_headings_of_most_states_belong_to_their_layout():
    assert learn_affordances([walk(HOUSE)], [("cup", "pen")]).layout == ("carrying", "places")


def test_a_gap_that_was_always_filled_alike_takes_no_other():
    turns = [(f"sink: empty\ncarrying: {cup}", f"wash {cup} with sink", False)
             for cup in ("red cup", "blue cup", "old cup")]  # fmt: skip
    known = learn_affordances([walk(turns)], [("red cup", "blue cup"), ("sink", "shelf")])
    assert known.candidates("sink: empty; shelf: empty\ncarrying: red cup") == (
        "wash red cup with sink",
    )


def test_a_thing_that_nobody_has_named_may_fill_a_gap_where_it_stands_right():
    state = "cellar\nshelf: glass eye, salt; iron door\nsouth: kitchen"
    assert KNOWN.candidates(state) == ("look around", "move south", "take glass eye", "take salt")


def test_what_is_heard_of_as_something_else_fills_no_gap():
    known = learn_affordances([walk()], [*CLASSES, ("kitchen", "hall")])
    assert KNOWN.candidates("cellar\nshelf: hall") == ("look around", "take hall")
    assert known.candidates("cellar\nshelf: hall") == ("look around",)


def test_records_tell_how_things_stand_for_kinds_that_were_demonstrated():
    back = [("kitchen\nbox: salt\nnorth: hall", "take salt", False),
            ("kitchen\nbox: salt\nnorth: hall", "eat salt", False)]  # fmt: skip
    takes = [("kitchen\nsalt\nnorth: hall", "take salt", False)]
    demonstration, other = walk(takes), walk(back)
    in_a_box = "hall\nbox: salt"
    assert learn_affordances([demonstration]).candidates(in_a_box) == ()
    known = learn_affordances([demonstration], recorded=[demonstration, other])
    assert known.candidates(in_a_box) == ("take salt",)


def test_what_was_only_done_with_free_hands_needs_them():
    takes = [(f"shelf: {cup}\ncarrying: nothing", f"take {cup}", False)
             for cup in ("red cup", "blue cup", "old cup")]  # fmt: skip
    known = learn_affordances([walk(takes)])
    assert known.candidates("shelf: red cup\ncarrying: nothing") == ("take red cup",)
    assert known.candidates("shelf: red cup\ncarrying: old cup") == ()
    assert learn_affordances([walk(takes[:2])]).frames[0].free_hands is False


def test_one_look_that_missed_a_thing_does_not_make_it_of_no_place():
    known = learn_affordances([walk([*WALK, ("hall", "take salt", False)] * 2)], CLASSES)
    assert "take sugar" not in known.candidates("hall")


def test_nothing_known_suggests_nothing():
    assert Affordances(()).candidates("hall\nsalt") == ()


def test_they_survive_a_file():
    assert affordances_from(json.loads(json.dumps(asdict(KNOWN)))) == KNOWN


def test_what_was_done_with_other_kinds_is_no_stranger():
    demonstration = walk([("hall\nshelf: salt", "take salt", False)])
    record = walk([("hall\nfridge; salt", "take salt", False),
                   ("hall\nfridge; salt", "open fridge", False)])  # fmt: skip
    known = learn_affordances([demonstration], recorded=[record])
    assert known.candidates("hall\nfridge; pepper") == ("take pepper",)


def test_a_kind_that_only_demonstrations_have_keeps_its_gaps():
    known = learn_affordances([walk([("hall\nshelf: salt", "take salt", False)])], recorded=[])
    assert known.candidates("hall\nshelf: salt") == ("take salt",)


def test_strange_things_go_by_their_bare_names():
    known = learn_affordances([walk([("hall\nshelf: salt", "take salt", False)])])
    assert known.candidates("hall (dark)\nshelf: gizmo 2 (clean)") == ("take gizmo 2",)


def test_frames_of_another_version_are_an_error_that_says_what_to_do():
    frames = [{"kind": "take _", "gaps": [{"names": ["salt"], "places": ["page"]}]}]
    with pytest.raises(ConfigError, match="train it again"):
        affordances_from({"frames": frames, "layout": [], "names": []})


@given(st.text(max_size=60))
def test_no_state_is_too_strange(text):
    found = KNOWN.candidates(text)
    assert list(found) == sorted(set(found))
