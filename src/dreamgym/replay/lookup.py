"""From queries to references: which groups a query may see, the nearest rows, their transitions.

Shared by the live buffer and its snapshots; holds no state of its own.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dreamgym.protocols import Vectors
from dreamgym.replay.index import Block, Found, nearest
from dreamgym.replay.packing import Group
from dreamgym.replay.store import read_transitions, rows_only_in
from dreamgym.types import Source, Split, Transition


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, and where."""

    state: str
    action: str
    exclude_trajectory: str | None = None
    """Leave this trajectory out: a sample must not be shown itself."""
    env: str | None = None
    source: Source | None = None
    split: Split | None = None

    def admits(self, group: Group) -> bool:
        """Say whether transitions of a group may be found."""
        return (
            self.env in (None, group.env)
            and self.source in (None, group.source)
            and self.split in (None, group.split)
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved transition: satisfies `protocols.Reference`."""

    transition: Transition
    similarity: float
    """Cosine of the two (state, action) keys."""
    count: int
    """How often this very transition was seen."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The searchable content of a store at one moment."""

    groups: Mapping[int, Group]
    blocks: Mapping[int, Block]


def look_up(
    connection: sqlite3.Connection,
    moment: Moment,
    queries: Sequence[Query],
    *,
    keys: Vectors,
    k: int,
    real_slots: int,
) -> list[tuple[Hit, ...]]:
    """Answer each query with its k nearest transitions, nearest first."""
    skips = {
        name: rows_only_in(connection, name)
        for name in {query.exclude_trajectory for query in queries}
        if name is not None
    }
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        alike[query.env, query.source, query.split].append(number)
    found: list[list[Found]] = [[] for _ in queries]
    for numbers in alike.values():
        skip = [skips.get(queries[n].exclude_trajectory or "", []) for n in numbers]
        visible = {c: g for c, g in moment.groups.items() if queries[numbers[0]].admits(g)}
        real, dream = (
            nearest(
                [
                    moment.blocks[code]
                    for code, group in visible.items()
                    if group.source is source and code in moment.blocks
                ],
                keys[numbers],
                k=k,
                skip=skip,
            )
            for source in (Source.REAL, Source.DREAM)
        )
        for n, reals, dreams in zip(numbers, real, dream, strict=True):
            found[n] = merge(reals, dreams, k=k, real_slots=real_slots)
    return _told(connection, moment, queries, found)


def merge(real: Sequence[Found], dream: Sequence[Found], *, k: int, real_slots: int) -> list[Found]:
    """Take the k best of two sorted lists, with at least `real_slots` real ones if there are."""

    def order(found: Found) -> tuple[float, int]:
        return -found.similarity, found.row

    best = sorted([*real, *dream], key=order)[:k]
    kept = set(real)
    reals = max(sum(found in kept for found in best), min(real_slots, len(real), k))
    return sorted([*real[:reals], *dream[: k - reals]], key=order)


def _told(
    connection: sqlite3.Connection,
    moment: Moment,
    queries: Sequence[Query],
    found: Sequence[Sequence[Found]],
) -> list[tuple[Hit, ...]]:
    wanted: dict[str | None, set[int]] = defaultdict(set)
    for query, hits in zip(queries, found, strict=True):
        wanted[query.exclude_trajectory].update(hit.row for hit in hits)
    told = {
        without: read_transitions(connection, sorted(rows), moment.groups, without=without)
        for without, rows in wanted.items()
    }
    answers = []
    for query, hits in zip(queries, found, strict=True):
        stored = told[query.exclude_trajectory]
        answers.append(
            tuple(
                Hit(stored[hit.row].transition, hit.similarity, stored[hit.row].count)
                for hit in hits
            )
        )
    return answers
