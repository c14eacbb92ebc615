"""From queries to references: which groups a query may see, the nearest rows, their transitions.

Shared by the live buffer and its snapshots; holds no state of its own.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dreamgym.protocols import Vectors
from dreamgym.replay.index import View
from dreamgym.replay.packing import Group
from dreamgym.replay.scan import Found, Rows, order, rescore, scan
from dreamgym.replay.store import read_transitions, read_vectors, rows_only_in
from dreamgym.types import Source, Split, Transition

READ = 4_000
"""Vectors of the cells that a search compares itself with."""
SHORTLIST = 24
"""Rows of the cells that are scored exactly, beyond the k that are asked for."""


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
    view: View


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries that may see the same groups."""

    numbers: list[int]
    """Their places among all queries."""
    keys: Vectors
    skip: list[Rows]
    """The rows that each must not find."""


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
    if k < 1:
        return [() for _ in queries]
    found: list[list[Found]] = [[] for _ in queries]
    for batch in _batches(connection, queries, keys):
        first = queries[batch.numbers[0]]
        real, dream = (
            nearest(
                connection,
                moment.view,
                batch,
                visible=[
                    code
                    for code, group in moment.groups.items()
                    if group.source is source and first.admits(group)
                ],
                k=k,
            )
            for source in (Source.REAL, Source.DREAM)
        )
        for number, reals, dreams in zip(batch.numbers, real, dream, strict=True):
            found[number] = merge(reals, dreams, k=k, real_slots=real_slots)
    return _told(connection, moment, queries, found)


def _batches(
    connection: sqlite3.Connection, queries: Sequence[Query], keys: Vectors
) -> Iterator[Batch]:
    """Put queries together that filter alike."""
    skips = {
        name: np.array(rows_only_in(connection, name), dtype=np.int64)
        for name in {query.exclude_trajectory for query in queries}
        if name is not None
    }
    nothing = np.empty(0, dtype=np.int64)
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        alike[query.env, query.source, query.split].append(number)
    for numbers in alike.values():
        skip = [skips.get(queries[n].exclude_trajectory or "", nothing) for n in numbers]
        yield Batch(numbers, keys[numbers], skip)


def nearest(
    connection: sqlite3.Connection, view: View, batch: Batch, *, visible: Sequence[int], k: int
) -> list[list[Found]]:
    """Return the k nearest rows of each query among the visible groups."""
    blocks = [view.blocks[code] for code in visible if code in view.blocks]
    scanned = scan(blocks, batch.keys, k=k, skip=batch.skip)
    if view.cells is None or not visible:
        return scanned
    answers = []
    for key, skip, recent in zip(batch.keys, batch.skip, scanned, strict=True):
        rows = view.cells.shortlist(
            key, visible=visible, alive=view.alive, read=READ, keep=SHORTLIST + k + len(skip)
        )
        rows = np.sort(rows[~np.isin(rows, skip)]) if len(skip) else np.sort(rows)
        vectors = read_vectors(connection, rows.tolist())
        exact = np.array([vectors[row] for row in rows.tolist()]).reshape(len(rows), len(key))
        old = rescore(rows, exact, key, k=k)
        answers.append(sorted([*recent, *old], key=order)[:k])
    return answers


def merge(real: Sequence[Found], dream: Sequence[Found], *, k: int, real_slots: int) -> list[Found]:
    """Take the k best of two sorted lists, with at least `real_slots` real ones if there are."""
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
