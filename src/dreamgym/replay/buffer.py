"""The experience store's public face: add, search, snapshot, evict.

`open_store` opens one file that holds all experience of a project, real and dreamed. Several
processes may have it open and write; each notices what the others stored. Admission rules keep out
what must never be learnt from, and every refusal is reported.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dreamgym.errors import ReplayError
from dreamgym.protocols import Embedder
from dreamgym.replay import store as sql
from dreamgym.replay.admit import refuse_trajectory
from dreamgym.replay.database import Database, Synchronous
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.index import EXACT_LIMIT, VectorIndex
from dreamgym.replay.intake import AddReport, Admission, Capacity, check_embedder, evict, take_in
from dreamgym.replay.key import ACTION_WEIGHT, KeyEncoder
from dreamgym.replay.lookup import Hit, Moment, Query, look_up
from dreamgym.replay.packing import pack, pack_trajectory, unpack_trajectory
from dreamgym.replay.snapshot import Snapshot
from dreamgym.types import Source, Split, Trajectory


@dataclass(frozen=True, slots=True)
class GroupStats:
    """How much a store holds of one environment, source and split."""

    env: str
    source: Source
    split: Split
    trajectories: int
    transitions: int


class ExperienceStore:
    """All experience of a project in one file, with retrieval. Made by `open_store`."""

    def __init__(
        self,
        database: Database,
        encoder: KeyEncoder,
        *,
        admission: Admission,
        capacity: Capacity,
        real_slots: int,
        exact_limit: int,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._admission = admission
        self._capacity = capacity
        self._real_slots = real_slots
        self._index = VectorIndex(database.path, encoder.dimensions, exact_limit=exact_limit)
        self._moment: Moment | None = None
        self._version: tuple[int, int] | None = None
        # Whoever holds it began to read after everything in the index was committed.
        self._index_lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._database.path

    def add(self, trajectories: Iterable[Trajectory]) -> AddReport:
        """Store trajectories in one transaction: all that may enter, or none on an error.

        One that was stored before under the same id is left as it is, so that a resumed job can
        simply add again.
        """
        return take_in(
            self._database,
            trajectories,
            admission=self._admission,
            encoder=self._encoder,
            capacity=self._capacity,
        )

    def has(self, trajectory_id: str) -> bool:
        """Say whether a trajectory was ever stored, even if it was evicted since."""
        with self._database.reading() as connection:
            return bool(sql.known_trajectories(connection, [trajectory_id]))

    def trajectory_ids(self) -> frozenset[str]:
        """Return the ids of all trajectories that were ever stored."""
        with self._database.reading() as connection:
            return frozenset(row[0] for row in connection.execute("SELECT id FROM trajectories"))

    def trajectories(
        self,
        *,
        source: Source | None = None,
        split: Split | None = None,
        env: str | None = None,
    ) -> Iterator[Trajectory]:
        """Yield the stored trajectories in the order of their arrival."""
        wanted = Query("", "", env=env, source=source, split=split)
        last = 0
        while True:
            with self._database.reading() as connection:
                groups = sql.read_groups(connection)
                codes = [code for code, group in groups.items() if wanted.admits(group)]
                records = sql.read_records(connection, codes, after=last)
            if not records:
                return
            last = records[-1][0]
            for _, body in records:
                yield unpack_trajectory(body)

    def update(self, trajectory: Trajectory) -> None:
        """Replace the explanations of a stored trajectory; everything else must be as it was."""
        refusal = refuse_trajectory(trajectory)
        if refusal is not None:
            raise ReplayError(f"trajectory {trajectory.id} cannot be stored: {refusal.reason}")
        with self._database.writing() as connection:
            found = connection.execute(
                "SELECT seq, body FROM trajectories WHERE id = ?", (trajectory.id,)
            ).fetchone()
            if found is None or found[1] is None:
                state = "was evicted" if found else "is not in the store"
                raise ReplayError(f"trajectory {trajectory.id} {state}; add it first")
            seq, body = found
            blank: tuple[None, ...] = (None,) * len(trajectory.steps)
            before = unpack_trajectory(body)
            if len(before.steps) != len(trajectory.steps) or (
                before.with_reasoning(blank) != trajectory.with_reasoning(blank)
            ):
                raise ReplayError(
                    f"trajectory {trajectory.id} differs from the stored one in more than its"
                    " explanations; a changed trajectory needs an id of its own"
                )
            steps = [(t.index, pack(t).body) for t in trajectory.transitions()]
            sql.rewrite(connection, seq, body=pack_trajectory(trajectory), steps=steps)

    def search(
        self,
        state: str,
        action: str,
        *,
        k: int,
        exclude_trajectory: str | None = None,
        env: str | None = None,
        source: Source | None = None,
        split: Split | None = None,
    ) -> tuple[Hit, ...]:
        """Return the k nearest transitions, nearest first, none of the excluded trajectory."""
        query = Query(state, action, exclude_trajectory, env, source, split)
        return self.search_batch([query], k=k)[0]

    def search_batch(self, queries: Sequence[Query], *, k: int) -> list[tuple[Hit, ...]]:
        """Answer many queries together; each gets what it would get alone."""
        keys = self._encoder.encode([q.state for q in queries], [q.action for q in queries])
        with self._index_lock, self._database.reading() as connection:
            moment = self._catch_up(connection)
            return look_up(connection, moment, queries, keys=keys, k=k, real_slots=self._real_slots)

    def snapshot(self, *, env: str | None = None) -> Snapshot:
        """Return a read-only view of this moment, of one environment if one is named.

        Close it when done: until then the file keeps what only it still sees.
        """
        frozen = Database(self.path, synchronous=self._database.synchronous)
        try:
            with self._index_lock:
                frozen.freeze()
                self._version = None  # one connection's numbers mean nothing to another
                with frozen.reading() as connection:
                    moment = self._catch_up(connection)
                self._version = None
        except BaseException:
            frozen.close()
            raise
        return Snapshot(frozen, moment, encoder=self._encoder, real_slots=self._real_slots, env=env)

    def evict(self, capacity: Capacity | None = None) -> int:
        """Shrink to the given capacity, or the store's own; return how many transitions went."""
        with self._database.writing() as connection:
            return evict(connection, capacity or self._capacity)

    def stats(self) -> tuple[GroupStats, ...]:
        """Return how much there is of each environment, source and split."""
        return _stats(self._database)

    def close(self) -> None:
        """Close the file; what was added is stored already."""
        self._database.close()

    def __enter__(self) -> ExperienceStore:
        """Return itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _catch_up(self, connection: sqlite3.Connection) -> Moment:
        # The first number counts the commits of others, the second our own changes.
        others = int(connection.execute("PRAGMA data_version").fetchone()[0])
        version = (others, connection.total_changes)
        if self._moment is None or version != self._version:
            check_embedder(self.path, sql.read_meta(connection), self._encoder)
            self._index.catch_up(connection)
            self._moment = Moment(sql.read_groups(connection), self._index.view())
            self._version = version
        return self._moment


def open_store(
    path: Path,
    *,
    embedder: Embedder | None = None,
    action_weight: float = ACTION_WEIGHT,
    allow_test: bool = False,
    capacity: Capacity | None = None,
    real_slots: int = 1,
    exact_limit: int = EXACT_LIMIT,
    synchronous: Synchronous = "normal",
) -> ExperienceStore:
    """Open an experience store, making it if the file does not exist.

    Args:
        path: The store's file. SQLite keeps two more beside it while it is open.
        embedder: What turns texts to vectors; the hashing one if not given. An existing store must
            be opened with the embedder it was made with.
        action_weight: How much the action weighs in a key, against 1 for the state.
        allow_test: Let tasks of the test split in. A store that was made without keeps them out
            for good, so that they can never be retrieved.
        capacity: How many transitions searches may find, per partition; unlimited if not given.
        real_slots: How many of a search's results are real, at least, however near the dreams are.
        exact_limit: Transitions up to which a search compares all of them; beyond, it reads the
            likeliest few thousand, from an index file beside the store.
        synchronous: `full` to survive even a power cut in the middle of a commit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder = KeyEncoder(embedder or HashingEmbedder(), action_weight=action_weight)
    database = Database(path, synchronous=synchronous)
    try:
        held = _declare(database, encoder, allow_test=allow_test)
    except BaseException:
        database.close()
        raise
    return ExperienceStore(
        database,
        encoder,
        admission=Admission(held),
        capacity=capacity or Capacity(),
        real_slots=real_slots,
        exact_limit=exact_limit,
    )


def read_stats(path: Path) -> tuple[GroupStats, ...]:
    """Return how much a store holds that is there, without the embedder that it was made with."""
    database = Database(path)
    try:
        return _stats(database)
    finally:
        database.close()


def _stats(database: Database) -> tuple[GroupStats, ...]:
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT env, source, split, (SELECT count(*) FROM trajectories WHERE grp = code),"
            " held FROM groups ORDER BY env, source, split"
        ).fetchall()
    return tuple(GroupStats(e, Source(s), Split(p), n, held) for e, s, p, n, held in rows)


def _declare(database: Database, encoder: KeyEncoder, *, allow_test: bool) -> frozenset[Split]:
    """Write what a new store is, or check what an existing one is; return the splits it takes."""
    asked = frozenset(Split) if allow_test else frozenset({Split.TRAIN, Split.DEV})
    with database.reading() as connection:
        notes = sql.read_meta(connection)
    if "embedder" not in notes:
        with database.writing() as connection:
            notes = sql.read_meta(connection)
            if "embedder" not in notes:
                notes = {
                    "store": uuid.uuid4().hex,
                    "embedder": encoder.digest,
                    "splits": ",".join(sorted(asked)),
                }
                sql.write_meta(connection, **notes)
    check_embedder(database.path, notes, encoder)
    held = frozenset(Split(name) for name in notes["splits"].split(","))
    if not asked <= held:
        raise ReplayError(
            f"{database.path} was made for the splits {notes['splits']} only, so that test tasks"
            " can never be retrieved from it: keep them in a store of their own"
        )
    return asked
