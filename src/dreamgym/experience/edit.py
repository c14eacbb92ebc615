"""A reply as an edit: what changes, goes and appears, instead of the whole state written anew.

`apply(old, diff(old, new)) == new` for any two texts. Numbers in an edit are those of the old
state's items (`states.numbered`). What was said before is never carried over; what is said now is
part of the edit. Where a change of page leaves little in place, the edit is the new page itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from dreamgym.experience.contents import bare, empty_word, lists, moves, with_thing, without_thing
from dreamgym.states import (
    SAID,
    Lines,
    body_from,
    body_of,
    items,
    lines_of,
    page_name,
    split_said,
    with_said,
)

_PAGE = "page"
_OP = re.compile(r"([=\-+&|*/])(\d+)(?: (.*))?", re.DOTALL)


class Verb(StrEnum):
    """What an operation does; the value is how it is written."""

    REPLACE = "="
    """Item i now reads so."""
    DROP = "-"
    """Item i is gone; a line without items goes with it."""
    BEFORE = "+"
    """A new item before item i, in its line."""
    AFTER = "&"
    """A new item after item i, in its line."""
    LINE = "|"
    """A new line before the line of item i; the number of items means at the end."""
    ENTER = "*"
    """A thing comes to the list of item i."""
    LEAVE = "/"
    """A thing goes from the list of item i."""


@dataclass(frozen=True, slots=True)
class Op:
    """One change."""

    verb: Verb
    item: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """All changes of one step."""

    ops: tuple[Op, ...] = ()
    page: str | None = None
    """The whole new body; then there are no operations."""
    said: tuple[str, ...] = ()
    """What the environment says to the action."""

    def __post_init__(self) -> None:
        """Refuse an edit that is two things."""
        if self.page is not None and self.ops:
            raise ValueError("an edit is either a new page or operations, not both")


def apply(old: str, edit: Edit) -> str:
    """Return the state after an edit. Raises `ValueError` for an item that is not there."""
    if edit.page is not None:
        return with_said(edit.page, edit.said)
    before = lines_of(body_of(old))
    count = sum(map(len, before))
    for op in edit.ops:
        # A new line beyond the end is one at the end, whatever a model has counted to.
        if op.verb is not Verb.LINE and op.item >= count:
            raise ValueError(
                f"'{op.verb}{op.item}' names an item that is not there; the state's items are "
                f"#0 to #{count - 1}"
            )
    by_item: dict[int, list[Op]] = {}
    for op in edit.ops:
        by_item.setdefault(min(_holder(op, old), count), []).append(op)
    empty = empty_word(old)
    after: list[list[str]] = []
    number = 0
    for line in before:
        rebuilt: list[str] = []
        for item in line:
            ops = by_item.get(number, [])
            # A new line stands before the line of its item, wherever the item is in it.
            after += [[op.text] for op in ops if op.verb is Verb.LINE]
            rebuilt += _rebuilt(item, ops, empty=empty)
            number += 1
        if rebuilt:
            after.append(rebuilt)
    after += [[op.text] for op in by_item.get(count, [])]
    return with_said(body_from(after), edit.said)


def _holder(op: Op, old: str) -> int:
    """Return the item that an operation is about: a thing can only go from where it is."""
    if op.verb is not Verb.LEAVE:
        return op.item
    listed = [number for number, item in enumerate(items(old)) if lists(item, op.text)]
    return listed[0] if len(listed) == 1 else op.item


def _rebuilt(item: str, ops: Sequence[Op], *, empty: str) -> list[str]:
    """Return what stands in the place of one item."""
    middle = [item]
    for op in ops:
        if op.verb is Verb.DROP:
            middle = []
        elif op.verb is Verb.REPLACE:
            middle = [op.text]
        elif op.verb is Verb.ENTER:
            middle = [with_thing(one, op.text) for one in middle]
        elif op.verb is Verb.LEAVE:
            # A thing that lies about by itself goes as a whole.
            kept = [one for one in middle if bare(one) != bare(op.text)]
            middle = [without_thing(one, op.text, empty=empty) for one in kept]
    before = [op.text for op in ops if op.verb is Verb.BEFORE]
    return [*before, *middle, *(op.text for op in ops if op.verb is Verb.AFTER)]


@lru_cache(maxsize=16_384)
def diff(old: str, new: str) -> Edit:
    """Return the edit that turns one state into another."""
    body, said = split_said(new)
    if with_said(body, said) != new:
        # Something was said in the middle: no layout of ours, so the text is taken as it is.
        return Edit(page=new)
    if _leaves_little(old, body):
        return Edit(page=body, said=said)
    ops = _line_ops(lines_of(body_of(old)), lines_of(body))
    edit = Edit(ops=_by_things(ops, old), said=said)
    if apply(old, edit) != new:
        edit = Edit(ops=ops, said=said)
    if apply(old, edit) != new or _is_longer_than(body, edit):
        return Edit(page=body, said=said)
    return edit


def _by_things(ops: Sequence[Op], old: str) -> tuple[Op, ...]:
    """Return operations that say which things come and go, where an item is such a list."""
    before, empty = items(old), empty_word(old)
    told: list[Op] = []
    for op in ops:
        found = moves(before[op.item], op.text, empty=empty) if op.verb is Verb.REPLACE else None
        if found is None:
            told.append(op)
            continue
        left, came = found
        told += [Op(Verb.LEAVE, op.item, thing) for thing in left]
        told += [Op(Verb.ENTER, op.item, thing) for thing in came]
    return tuple(told)


def _is_longer_than(body: str, edit: Edit) -> bool:
    """Say whether the page is the shorter answer."""
    return bool(edit.ops) and len(render(Edit(ops=edit.ops))) > len(_PAGE) + 1 + len(body)


def _leaves_little(old: str, body: str) -> bool:
    """Say whether a step leads to another page on which less than half is as before."""
    if page_name(old) == page_name(body):
        return False
    before, after = items(old), items(body)
    kept = sum(item in after for item in before)
    return 2 * kept < max(len(before), len(after))


Costed = tuple[float, tuple[Op, ...]]
"""Operations and what they cost: the cheaper of two ways to say the same is taken."""


def _line_ops(old: Lines, new: Lines) -> tuple[Op, ...]:
    """Return operations between the items of two bodies, by the cheapest pairing of lines."""
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    head, tail = _shared_ends(old, new)
    rows, columns = len(old) - tail, len(new) - tail

    def pair(i: int, j: int) -> Costed:
        return _item_ops(old[i], new[j], first=starts[i])

    def drop(i: int) -> Costed:
        gone = tuple(Op(Verb.DROP, starts[i] + n) for n in range(len(old[i])))
        return float(len(gone)), gone

    def add(i: int, j: int) -> Costed:
        return 1.0 + len(new[j]), (Op(Verb.LINE, starts[i], body_from([new[j]])),)

    return _cheapest(range(head, rows + 1), range(head, columns + 1), pair, drop, add)[1]


def _item_ops(old: Sequence[str], new: Sequence[str], *, first: int) -> Costed:
    """Return cost and operations between the items of two lines that stand for each other."""
    head, tail = _shared_ends(old, new)
    rows, columns, last = len(old) - tail, len(new) - tail, len(old) - 1

    def pair(i: int, j: int) -> Costed:
        if old[i] == new[j]:
            return 0.0, ()
        return _change(old[i], new[j]), (Op(Verb.REPLACE, first + i, new[j]),)

    def drop(i: int) -> Costed:
        return 1.0, (Op(Verb.DROP, first + i),)

    def add(i: int, j: int) -> Costed:
        place = Op(Verb.BEFORE, first + i, new[j]) if i <= last else None
        return 2.0, (place or Op(Verb.AFTER, first + last, new[j]),)

    return _cheapest(range(head, rows + 1), range(head, columns + 1), pair, drop, add)


def _cheapest(
    rows: range,
    columns: range,
    pair: Callable[[int, int], Costed],
    drop: Callable[[int], Costed],
    add: Callable[[int, int], Costed],
) -> Costed:
    """Return the cheapest way through a table of pairs, drops and additions (edit distance)."""
    best: dict[tuple[int, int], Costed] = {(rows[-1], columns[-1]): (0.0, ())}
    for i in reversed(rows):
        for j in reversed(columns):
            choices = []
            if i < rows[-1] and j < columns[-1]:
                choices.append((pair(i, j), best[i + 1, j + 1]))
            if i < rows[-1]:
                choices.append((drop(i), best[i + 1, j]))
            if j < columns[-1]:
                choices.append((add(i, j), best[i, j + 1]))
            if choices:
                one, rest = min(choices, key=lambda choice: choice[0][0] + choice[1][0])
                best[i, j] = (one[0] + rest[0], one[1] + rest[1])
    return best[rows[0], columns[0]]


def _shared_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Return how many entries two lists share at their beginnings and at their ends."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _change(old: str, new: str) -> float:
    """Return what it costs to say that one item became another: little if it is the same thing."""
    return 1.0 if old.split(":")[0] == new.split(":")[0] else 2.5


def render(edit: Edit) -> str:
    """Return an edit as text: one operation per line, or `page` and the page; then what is said."""
    said = [f"{SAID}{words}" for words in edit.said]
    if edit.page is not None:
        return "\n".join([_PAGE, with_said(edit.page, edit.said)])
    ops = [f"{op.verb}{op.item}" + (f" {op.text}" if op.text else "") for op in edit.ops]
    return "\n".join([*ops, *said])


def parse(text: str) -> Edit:
    """Read an edit back. Raises `ValueError` naming the line that is none."""
    lines = text.split("\n") if text else []
    if lines[:1] == [_PAGE]:
        body, said = split_said("\n".join(lines[1:]))
        whole = "\n".join(lines[1:])
        return Edit(page=body, said=said) if with_said(body, said) == whole else Edit(page=whole)
    ops: list[Op] = []
    said_lines: list[str] = []
    for line in lines:
        if line.startswith(SAID):
            said_lines.append(line[len(SAID) :])
            continue
        ops.append(parse_op(line))
    return Edit(ops=tuple(ops), said=tuple(said_lines))


def parse_op(line: str) -> Op:
    """Read one operation."""
    found = _OP.fullmatch(line)
    if found is None:
        raise ValueError(
            f"'{line[:80]}' is no operation; write '=3 new text', '-3', '+3 new item', "
            "'&3 new item', '|3 new line', '*3 thing that comes', '/3 thing that goes', '> words' "
            "or 'page' and the page below it"
        )
    verb, text = Verb(found[1]), found[3] or ""
    if verb is Verb.DROP and text:
        raise ValueError(f"'{line[:80]}': a drop takes no text")
    return Op(verb, int(found[2]), text)
