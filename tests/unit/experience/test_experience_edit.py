"""Edits: exact for any two states, readable, and strict about what they accept."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recorded_states import STATES, STEPS

from dreamgym.experience.edit import Edit, Op, Verb, apply, diff, parse, render

LINE = st.lists(st.sampled_from(["a", "b: c", "d", "", " ", "box: x", ";", "page"]), max_size=4)
LAID_OUT = st.lists(LINE.map("; ".join), max_size=5).map("\n".join)
SAID = st.lists(st.sampled_from(["> no", "> ", ">", "> a; b"]), max_size=2).map("\n".join)
STATE = st.one_of(
    st.text(), LAID_OUT, st.tuples(LAID_OUT, SAID).map("\n".join), st.sampled_from(STATES)
)


@given(old=STATE, new=STATE)
@example(old="a", new="")
@example(old="", new="> x")
@example(old="a; b", new="> x")
@example(old="a\nb; c", new="n\na\nb; c")
@example(old="a\nb; c\nd", new="a\nd")
@example(old="a\n", new="a")
@settings(max_examples=500, deadline=None)
def test_an_edit_says_all_and_its_text_too(old, new):
    edit = diff(old, new)
    assert apply(old, edit) == new
    assert parse(render(edit)) == edit


def test_a_thing_goes_also_when_it_is_named_without_its_state():
    state = "at sink 1: cup 1 (clean), cup 2"
    assert apply(state, parse("/0 cup 1")) == "at sink 1: cup 2"
    assert apply(state, parse("/0 cup 1 (hot)")) == "at sink 1: cup 2"
    with pytest.raises(ValueError, match="not in the list"):
        apply(state, parse("/0 cup 3"))


def test_a_thing_goes_by_a_part_of_its_name_where_only_one_has_it():
    assert apply("carrying 1/3: fried potato", parse("/0 potato")) == "carrying 0/3: empty"
    with pytest.raises(ValueError, match="not in the list"):
        apply("carrying 2/3: fried potato, raw potato", parse("/0 potato"))


def test_a_new_line_beyond_the_end_is_one_at_the_end():
    assert apply("kitchen\ncup", parse("|7 carrying: fork")) == "kitchen\ncup\ncarrying: fork"
    with pytest.raises(ValueError, match="not there"):
        apply("kitchen\ncup", parse("=7 cup"))


def test_edits_carry_all_recorded_steps_and_most_are_short():
    shorter = 0
    for _, _, old, _, new, _ in STEPS:
        edit = diff(old, new)
        assert apply(old, edit) == new
        shorter += len(render(edit)) < len(new)
    assert len(STEPS) > 200
    assert shorter > 0.8 * len(STEPS)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("kitchen\nfork; knife", "kitchen\nknife\ncarrying: fork", "-1\n|3 carrying: fork"),
        ("kitchen\nbox: empty; cup", "kitchen\nbox: coin; cup", "*1 coin"),
        ("kitchen\nbox: a, b", "kitchen\nbox: a", "/1 b"),
        ("kitchen\nbox: a; jar: b", "kitchen\nbox: empty; jar: a, b", "/1 a\n*2 a"),
        ("in\ncarrying 2/4: a, egg", "in\ncarrying 2/4: a, fried egg", "/1 egg\n*1 fried egg"),
        ("in\ncarrying 1/4: a", "in\ncarrying 2/4: a, b", "*1 b"),
        ("in\nbox: a, b, c", "in\nbox: c, meal", "=1 box: c, meal"),
        ("in\nbox: b, a", "in\nbox: a, b, c", "=1 box: a, b, c"),
        ("in\nfridge: closed", "in\nfridge open: egg", "=1 fridge open: egg"),
        ("kitchen\ncup\n> taken", "kitchen\ncup", ""),
        ("kitchen\ncup", "kitchen\ncup\n> unknown action", "> unknown action"),
        ("kitchen\ncup", "kitchen\napple; cup", "+1 apple"),
        ("kitchen\ncup", "kitchen\ncup; pan", "&1 pan"),
        ("kitchen\ncup", "hall\ncoat", "page\nhall\ncoat"),
        ("at a\ncarrying: no\nplaces: a, b", "at b\ncarrying: no\nplaces: a, b", "=0 at b"),
    ],
)
def test_how_edits_read(old, new, text):
    assert render(diff(old, new)) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("take the coin", "is no operation"),
        ("=x coin", "is no operation"),
        ("-3 coin", "a drop takes no text"),
        ("=1 a\npage\nb", "is no operation"),
    ],
)
def test_what_is_no_edit_is_refused_by_name(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse(text)


def test_an_item_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="items are #0 to #1"):
        apply("kitchen\ncup", Edit(ops=(Op(Verb.REPLACE, 2, "x"),)))


def test_a_page_and_operations_do_not_go_together():
    with pytest.raises(ValueError, match="either a new page or operations"):
        Edit(ops=(Op(Verb.DROP, 0),), page="kitchen")


def test_a_thing_that_lies_about_goes_as_a_whole():
    hall = "hall\nred cup; shelf: pen"
    assert (
        apply(hall, parse("/1 red cup\n|3 carrying: red cup"))
        == "hall\nshelf: pen\ncarrying: red cup"
    )
    with pytest.raises(ValueError, match="lists nothing"):
        apply(hall, parse("/1 hat"))
