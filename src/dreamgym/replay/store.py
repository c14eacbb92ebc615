"""What the tables mean: trajectories, their transitions and the transitions' vectors, in SQL.

Functions over an open transaction; `buffer.py` decides when, and in which order. The archive of
trajectories is complete; a transition is stored once, however often it was seen.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dreamgym.replay.packing import Group, Packed, unpack, unpack_trajectory
from dreamgym.types import Source, Split, Trajectory, Transition

T = TypeVar("T")
_AT_ONCE = 500
"""Values per `IN (...)`: well below SQLite's limit on parameters."""
_REMEMBERED = 1_000_000
"""Removals listed for other processes; one that was away for longer reads everything again."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One step of a trajectory on its way into the store."""

    packed: Packed
    group: int
    dreamed: bool
    trajectory: int
    step: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A transition as the store returns it."""

    row: int
    transition: Transition
    count: int
    """How often it was seen."""


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the store's notes about itself."""
    return dict(connection.execute("SELECT name, value FROM meta"))


def write_meta(connection: sqlite3.Connection, **notes: str) -> None:
    """Write notes, replacing those of the same name."""
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", notes.items())


def read_groups(connection: sqlite3.Connection) -> dict[int, Group]:
    """Return every group by its code."""
    rows = connection.execute("SELECT code, env, source, split FROM groups")
    return {code: Group(env, Source(source), Split(split)) for code, env, source, split in rows}


def group_code(connection: sqlite3.Connection, group: Group) -> int:
    """Return the code of a group, making it if it is new."""
    place = (group.env, group.source.value, group.split.value)
    connection.execute("INSERT OR IGNORE INTO groups (env, source, split) VALUES (?, ?, ?)", place)
    found = connection.execute(
        "SELECT code FROM groups WHERE env = ? AND source = ? AND split = ?", place
    )
    return int(found.fetchone()[0])


def claim_mapper(connection: sqlite3.Connection, env: str, digest: str) -> str:
    """Record an environment's mapper if it has none yet, and return the one it has."""
    connection.execute("INSERT OR IGNORE INTO mappers VALUES (?, ?)", (env, digest))
    return str(connection.execute("SELECT digest FROM mappers WHERE env = ?", (env,)).fetchone()[0])


def known_trajectories(connection: sqlite3.Connection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that were ever stored."""
    return {
        str(row[0]) for row in _where_in(connection, "SELECT id FROM trajectories WHERE id", ids)
    }


def known_keys(connection: sqlite3.Connection, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the duplicate keys that are stored."""
    return {
        bytes(row[0])
        for row in _where_in(connection, "SELECT key FROM transitions WHERE key", keys)
    }


def insert_trajectory(
    connection: sqlite3.Connection, trajectory: Trajectory, *, group: int, body: bytes
) -> int:
    """Store a trajectory's record and return its number."""
    done = connection.execute(
        "INSERT INTO trajectories (id, grp, task_id, body) VALUES (?, ?, ?, ?)",
        (trajectory.id, group, trajectory.task.id, body),
    )
    return int(done.lastrowid or 0)


def insert_transitions(
    connection: sqlite3.Connection, fresh: Sequence[Sighting], vectors: Sequence[bytes]
) -> None:
    """Store new transitions with their vectors, numbered in order."""
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'transitions'")
    first = (last.fetchone() or (0,))[0] + 1
    connection.executemany(
        "INSERT INTO transitions (row, key, grp, dreamed, trajectory, step, count, seen, body)"
        " VALUES (:row, :key, :grp, :dreamed, :trajectory, :step, 1, :trajectory, :body)",
        (
            {
                "row": row,
                "key": sighting.packed.key,
                "grp": sighting.group,
                "dreamed": sighting.dreamed,
                "trajectory": sighting.trajectory,
                "step": sighting.step,
                "body": sighting.packed.body,
            }
            for row, sighting in enumerate(fresh, start=first)
        ),
    )
    connection.executemany(
        "UPDATE groups SET held = held + ? WHERE code = ?",
        ((count, code) for code, count in Counter(s.group for s in fresh).items()),
    )
    connection.executemany(
        "INSERT INTO vectors (row, grp, vector) VALUES (?, ?, ?)",
        (
            (row, s.group, vector)
            for row, (s, vector) in enumerate(zip(fresh, vectors, strict=True), start=first)
        ),
    )


def count_again(connection: sqlite3.Connection, repeats: Iterable[Sighting]) -> None:
    """Count transitions that are stored already; the first other trajectory is remembered."""
    connection.executemany(
        "UPDATE transitions SET count = count + 1, seen = :seen,"
        " also_step = iif(also IS NULL AND trajectory != :seen, :step, also_step),"
        " also = iif(also IS NULL AND trajectory != :seen, :seen, also) WHERE key = :key",
        ({"seen": s.trajectory, "step": s.step, "key": s.packed.key} for s in repeats),
    )


def rows_only_in(connection: sqlite3.Connection, trajectory_id: str) -> list[int]:
    """Return the transitions that no other trajectory has shown."""
    found = connection.execute(
        "SELECT row FROM transitions WHERE also IS NULL"
        " AND trajectory = (SELECT seq FROM trajectories WHERE id = ?)",
        (trajectory_id,),
    )
    return [int(row[0]) for row in found]


def read_transitions(
    connection: sqlite3.Connection,
    rows: Sequence[int],
    groups: Mapping[int, Group],
    *,
    without: str | None = None,
) -> dict[int, Stored]:
    """Return transitions by row; one first seen in `without` is told by its other trajectory."""
    found = {}
    for row, grp, step, count, body, name, task, also, also_step in _where_in(
        connection,
        "SELECT t.row, t.grp, t.step, t.count, t.body, j.id, j.task_id, t.also, t.also_step"
        " FROM transitions t JOIN trajectories j ON j.seq = t.trajectory WHERE t.row",
        rows,
    ):
        told = unpack(body, trajectory_id=name, index=step, task_id=task, group=groups[grp])
        if name == without and also is not None:
            told = _as_seen_in(connection, told, seq=also, step=also_step)
        found[row] = Stored(row, told, count)
    return found


def _as_seen_in(
    connection: sqlite3.Connection, transition: Transition, *, seq: int, step: int
) -> Transition:
    """Tell a transition by another trajectory that has it, with that one's explanation."""
    name, task, body = connection.execute(
        "SELECT id, task_id, body FROM trajectories WHERE seq = ?", (seq,)
    ).fetchone()
    reasoning = None if body is None else unpack_trajectory(body).steps[step].reasoning
    return replace(
        transition,
        id=f"{name}#{step}",
        trajectory_id=name,
        index=step,
        task_id=task,
        reasoning=reasoning,
    )


def read_vectors(
    connection: sqlite3.Connection, rows: Sequence[int]
) -> dict[int, NDArray[np.float16]]:
    """Return the vectors of a few rows, exactly as stored."""
    found = _where_in(connection, "SELECT row, vector FROM vectors WHERE row", rows)
    return {row: np.frombuffer(vector, dtype=np.float16) for row, vector in found}


def read_records(
    connection: sqlite3.Connection, codes: Sequence[int], *, after: int
) -> list[tuple[int, bytes]]:
    """Return the next few trajectory records of some groups, in order of arrival."""
    marks = ",".join("?" * len(codes))
    found = connection.execute(
        f"SELECT seq, body FROM trajectories WHERE seq > ? AND +grp IN ({marks})"
        " AND body IS NOT NULL ORDER BY seq LIMIT 64",
        (after, *codes),
    )
    return found.fetchall()


def read_task(connection: sqlite3.Connection, task_id: str) -> list[bytes]:
    """Return the trajectory records of one task, in order of arrival."""
    found = connection.execute(
        "SELECT body FROM trajectories WHERE task_id = ? AND body IS NOT NULL ORDER BY seq",
        (task_id,),
    )
    return [row[0] for row in found]


def rewrite(
    connection: sqlite3.Connection, seq: int, *, body: bytes, steps: Iterable[tuple[int, bytes]]
) -> None:
    """Replace a trajectory's record and the bodies of the transitions it was the first to show."""
    connection.execute("UPDATE trajectories SET body = ? WHERE seq = ?", (body, seq))
    connection.executemany(
        "UPDATE transitions SET body = ? WHERE trajectory = ? AND step = ?",
        ((packed, seq, step) for step, packed in steps),
    )


def evict_stalest(connection: sqlite3.Connection, source: Source, *, keep: int) -> int:
    """Delete the transitions of a partition that were not seen for longest, but for `keep`."""
    held = connection.execute("SELECT sum(held) FROM groups WHERE source = ?", (source.value,))
    surplus = int(held.fetchone()[0] or 0) - keep
    if surplus <= 0:
        return 0
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (row INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM doomed")
    connection.execute(
        "INSERT INTO doomed SELECT row FROM transitions WHERE dreamed = ?"
        " ORDER BY seen, row LIMIT ?",
        (source is Source.DREAM, surplus),
    )
    lost = connection.execute(
        "SELECT grp, count(*) FROM vectors WHERE row IN (SELECT row FROM doomed) GROUP BY grp"
    ).fetchall()
    connection.executemany(
        "UPDATE groups SET held = held - ? WHERE code = ?", ((count, grp) for grp, count in lost)
    )
    for table in ("transitions", "vectors"):
        connection.execute(f"DELETE FROM {table} WHERE row IN (SELECT row FROM doomed)")
    connection.execute("INSERT INTO removals (row) SELECT row FROM doomed")
    connection.execute(
        "DELETE FROM removals WHERE seq <= (SELECT max(seq) FROM removals) - ?", (_REMEMBERED,)
    )
    return surplus


def forget_dreams(connection: sqlite3.Connection) -> None:
    """Empty the records of dreams that are older than every dreamed transition left."""
    since = int(read_meta(connection).get("forgotten", 0))
    oldest = connection.execute("SELECT min(seen) FROM transitions WHERE dreamed = 1").fetchone()[0]
    if oldest is None:
        oldest = connection.execute("SELECT max(seq) + 1 FROM trajectories").fetchone()[0]
    connection.execute(
        "UPDATE trajectories SET body = NULL WHERE seq >= ? AND seq < ?"
        " AND +grp IN (SELECT code FROM groups WHERE source = 'dream')",
        (since, oldest),
    )
    write_meta(connection, forgotten=str(oldest))


def _where_in(
    connection: sqlite3.Connection, query: str, values: Sequence[T]
) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        yield from connection.execute(f"{query} IN ({','.join('?' * len(part))})", part)
