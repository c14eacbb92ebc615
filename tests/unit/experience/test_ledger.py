"""Pages: what was shown stays true, hands go along, other tasks say nothing."""

from recorded_states import STEPS
from small_house import OPENING, page, transition

from dreamgym.experience.edit import Edit, Op, Verb, apply, diff
from dreamgym.experience.ledger import (
    Ledger,
    Page,
    Pages,
    carried_things,
    page_of,
    recalled_pages,
    resolve,
    shorten,
)
from dreamgym.replay.lookup import Hit
from dreamgym.types import Origin

AT_DESK = "at desk 1: pen 1\ncarrying: nothing\nplaces: desk 1, drawer 1"
AT_DRAWER = "at drawer 1 closed\ncarrying: nothing\nplaces: desk 1, drawer 1\n> arrived"


def ledger(*states):
    kept = Ledger()
    for state in states:
        kept.show(state)
    return kept


def test_a_page_is_seen_with_what_one_carries():
    assert page_of("hall\ncoat\n> hi") == Page(("hall", "coat"))
    assert page_of("hall\ncoat").seen_by(("carrying: cup",)) == "hall\ncoat\ncarrying: cup"
    placed = page_of(AT_DESK)
    assert placed.seen_by(("carrying: pen 1",)).split("\n")[1] == "carrying: pen 1"
    assert placed.seen_by(()).split("\n")[1] == "places: desk 1, drawer 1"
    assert carried_things("hall\ncarrying 2/4: red cup, knife") == {"red cup", "knife"}
    assert carried_things("hall\ncarrying: nothing") == frozenset()


def test_the_ledger_keeps_pages_as_last_seen():
    kept = ledger("kitchen\ncup; spoon", "kitchen\nspoon\ncarrying: cup")
    assert kept.page("kitchen") == Page(("kitchen", "spoon", None))
    assert kept.page("attic") is None


def test_a_named_page_is_given_verbatim():
    pages = Pages(ledger(OPENING))
    hall = page("hall", ["cup"])
    assert resolve(Edit(page="kitchen"), hall, pages=pages) == (
        f"{OPENING}\ncarrying: cup", Origin.LEDGER
    )  # fmt: skip
    lie = Edit(page="kitchen\ndragon", said=("you walk",))
    assert resolve(lie, hall, pages=pages)[0] == f"{OPENING}\ncarrying: cup\n> you walk"
    assert resolve(lie, hall, pages=None) == ("kitchen\ndragon\n> you walk", Origin.MODEL)
    assert resolve(Edit(page="attic"), hall, pages=pages) == ("attic", Origin.MODEL)


def test_a_place_that_an_edit_leads_to_counts_as_named():
    pages = Pages(ledger(AT_DESK, AT_DRAWER))
    back = Edit(ops=(Op(Verb.REPLACE, 0, "at desk 1: nothing at all"),))
    assert resolve(back, AT_DRAWER, pages=pages) == (AT_DESK, Origin.LEDGER)


def test_a_place_is_open_or_closed_as_it_was_left_and_not_as_it_is_named():
    opened = AT_DRAWER.replace("drawer 1 closed", "drawer 1 open: key 1")
    shown = Pages(ledger(AT_DRAWER, opened, AT_DESK))
    named_closed = Edit((Op(Verb.REPLACE, 0, "at drawer 1 closed"),))
    assert "drawer 1 open: key 1" in resolve(named_closed, AT_DESK, pages=shown)[0]
    named_open = Edit((Op(Verb.REPLACE, 0, "at drawer 1 open"),))
    first = page_of(AT_DRAWER)
    recalled = {"at drawer 1 open": page_of(opened), "at drawer 1 closed": first, "drawer 1": first}
    known = Pages(ledger(AT_DESK), recalled)
    assert "drawer 1 closed" in resolve(named_open, AT_DESK, pages=known)[0]
    assert "drawer 1 open: key 1" in resolve(named_open, AT_DRAWER, pages=known)[0], "by opening it"


def test_changes_where_one_stands_are_the_models():
    pages = Pages(ledger(OPENING))
    taken = diff(OPENING, "kitchen\nspoon\nwest: hall\ncarrying: cup")
    assert resolve(taken, OPENING, pages=pages)[1] is Origin.MODEL
    stays = resolve(Edit(page="kitchen", said=("no",)), OPENING, pages=pages)
    assert stays == (f"{OPENING}\n> no", Origin.MODEL)
    simon = resolve(Edit(page="Simon says: hop"), "Simon says: run", pages=pages)
    assert simon == ("Simon says: hop", Origin.MODEL)


def test_references_of_the_same_task_hold_pages_without_what_is_in_hand():
    hits = [Hit(transition(OPENING, "move west"), 0.9, 1)]
    found = recalled_pages(hits, task_id="house#0", state=page("garden", ["cup"]))
    assert found == {
        "hall": page_of(page("hall")),
        "kitchen": Page(("kitchen", "spoon", "west: hall")),
    }
    assert recalled_pages(hits, task_id="house#1", state=OPENING) == {}


def test_a_place_emptied_by_the_agent_is_not_recalled():
    one = transition(OPENING, "move west")
    boxed = type(one)(**{**_fields(one), "state": "attic\nbox: coin", "next_state": "hall\ncoat"})
    found = recalled_pages([Hit(boxed, 0.9, 1)], task_id="house#0", state="hall\ncarrying: coin")
    assert set(found) == {"hall"}


def _fields(value):
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def test_shortened_edits_mean_the_same_on_recorded_steps():
    shorter = 0
    for before, step in zip([None, *STEPS], STEPS, strict=False):
        path, _, old, _, new, _ = step
        if before is None or before[0] != path:
            kept = ledger()
        kept.show(old)
        edit = diff(old, new)
        short = shorten(edit, old, pages=Pages(kept))
        assert apply(old, edit) == new
        if short != edit:
            shorter += 1
            assert resolve(short, old, pages=Pages(kept))[0] == new
    assert shorter > 5
