"""How trajectories enter the store: checked, packed, embedded, then written in one transaction.

Everything slow happens before the transaction begins, so that several processes can write.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dreamgym.errors import ConfigError, ReplayError
from dreamgym.replay import store as sql
from dreamgym.replay.admit import (
    TRAJECTORY_RULES,
    TRANSITION_RULES,
    Refusal,
    TrajectoryRule,
    TransitionRule,
    refuse_trajectory,
    refuse_transition,
)
from dreamgym.replay.database import Database
from dreamgym.replay.key import KeyEncoder
from dreamgym.replay.packing import Group, Packed, pack, pack_trajectory
from dreamgym.types import Source, Split, Trajectory, Transition

_EMBED_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class AddReport:
    """What became of the trajectories handed to `add`."""

    trajectories: int = 0
    """Stored now."""
    known: int = 0
    """Stored before under the same id, and left as they were."""
    transitions: int = 0
    """New ones that searches can find."""
    duplicates: int = 0
    """Steps equal to a stored one: counted there, not stored again."""
    refused: tuple[Refusal, ...] = ()
    evicted: int = 0
    """Older transitions that had to make room."""

    @property
    def refused_by_rule(self) -> dict[str, int]:
        """How many refusals each rule made."""
        return dict(Counter(refusal.rule for refusal in self.refused))


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules of a store."""

    splits: frozenset[Split]
    trajectory_rules: tuple[TrajectoryRule, ...] = TRAJECTORY_RULES
    transition_rules: tuple[TransitionRule, ...] = TRANSITION_RULES

    def refuse(self, trajectory: Trajectory) -> Refusal | None:
        """Return why the trajectory must stay out, or None."""
        split = trajectory.task.split
        if split not in self.splits:
            held = ", ".join(sorted(self.splits))
            reason = f"this store holds {held} tasks, not {split}: held-out tasks must not leak"
            return Refusal(trajectory.id, "split", reason)
        return refuse_trajectory(trajectory, self.trajectory_rules)


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many transitions each partition may hold for searches; None is no limit."""

    real: int | None = None
    dream: int | None = None

    def __post_init__(self) -> None:
        """Refuse capacities below zero."""
        for name, limit in (("real", self.real), ("dream", self.dream)):
            if limit is not None and limit < 0:
                raise ConfigError(f"capacity {name}={limit} must not be negative")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A trajectory ready to be written."""

    trajectory: Trajectory
    group: Group
    body: bytes
    steps: tuple[tuple[Transition, Packed], ...]
    refused: tuple[Refusal, ...]


def check_embedder(path: Path, notes: Mapping[str, str], encoder: KeyEncoder) -> None:
    """Refuse to mix vectors of different embedders."""
    if notes["embedder"] != encoder.digest:
        raise ReplayError(
            f"{path} is indexed with {notes['embedder']}, not with {encoder.digest}: open it with"
            " the embedder it has, or run `dreamgym replay reindex` to give it this one"
        )


def prepare(trajectory: Trajectory, admission: Admission) -> Prepared:
    """Pack a trajectory that may enter, without the steps that must not be found."""
    steps, refused = [], []
    for transition in trajectory.transitions():
        refusal = refuse_transition(transition, admission.transition_rules)
        if refusal is None:
            steps.append((transition, pack(transition)))
        else:
            refused.append(refusal)
    task = trajectory.task
    group = Group(task.env, trajectory.provenance.source, task.split)
    return Prepared(trajectory, group, pack_trajectory(trajectory), tuple(steps), tuple(refused))


def take_in(
    database: Database,
    trajectories: Iterable[Trajectory],
    *,
    admission: Admission,
    encoder: KeyEncoder,
    capacity: Capacity,
) -> AddReport:
    """Store what may enter, in one transaction, and report on all of it."""
    admitted, refused, given = [], [], 0
    for trajectory in trajectories:
        given += 1
        refusal = admission.refuse(trajectory)
        if refusal is None:
            admitted.append(trajectory)
        else:
            refused.append(refusal)
    with database.reading() as connection:
        known = sql.known_trajectories(connection, [trajectory.id for trajectory in admitted])
    first: dict[str, Trajectory] = {}
    for trajectory in admitted:
        if trajectory.id not in known:
            first.setdefault(trajectory.id, trajectory)
    prepared = [prepare(trajectory, admission) for trajectory in first.values()]
    vectors = _embed_new(database, prepared, encoder)
    with database.writing() as connection:
        check_embedder(database.path, sql.read_meta(connection), encoder)
        entering = _still_entering(connection, prepared, refused)
        fresh, repeats = _sightings(connection, entering)
        missing = [sighting for sighting in fresh if sighting.packed.key not in vectors]
        if missing:  # a duplicate that was evicted since we looked
            vectors |= _embed_steps(entering, {s.packed.key for s in missing}, encoder)
        sql.insert_transitions(connection, fresh, [vectors[s.packed.key] for s in fresh])
        sql.count_again(connection, repeats)
        evicted = evict(connection, capacity)
    return AddReport(
        trajectories=len(entering),
        known=given - len(entering) - sum(refusal.index is None for refusal in refused),
        transitions=len(fresh),
        duplicates=len(repeats),
        refused=(*refused, *(refusal for item in entering for refusal in item.refused)),
        evicted=evicted,
    )


def evict(connection: sqlite3.Connection, capacity: Capacity) -> int:
    """Remove the stalest transitions beyond what each partition may hold."""
    evicted = 0
    if capacity.real is not None:
        evicted += sql.evict_stalest(connection, Source.REAL, keep=capacity.real)
    if capacity.dream is not None:
        dreams = sql.evict_stalest(connection, Source.DREAM, keep=capacity.dream)
        if dreams:
            sql.forget_dreams(connection)
        evicted += dreams
    return evicted


def _embed_new(
    database: Database, prepared: Sequence[Prepared], encoder: KeyEncoder
) -> dict[bytes, bytes]:
    keys = {packed.key for item in prepared for _, packed in item.steps}
    with database.reading() as connection:
        keys -= sql.known_keys(connection, list(keys))
    return _embed_steps(prepared, keys, encoder)


def _embed_steps(
    prepared: Sequence[Prepared], keys: Set[bytes], encoder: KeyEncoder
) -> dict[bytes, bytes]:
    steps = {
        packed.key: transition
        for item in prepared
        for transition, packed in item.steps
        if packed.key in keys
    }
    vectors: dict[bytes, bytes] = {}
    wanted = list(steps.items())
    for start in range(0, len(wanted), _EMBED_AT_ONCE):
        part = wanted[start : start + _EMBED_AT_ONCE]
        rows = encoder.encode([t.state for _, t in part], [t.action for _, t in part])
        halves = rows.astype(np.float16)
        vectors.update((key, row.tobytes()) for (key, _), row in zip(part, halves, strict=True))
    return vectors


def _still_entering(
    connection: sqlite3.Connection, prepared: Sequence[Prepared], refused: list[Refusal]
) -> list[Prepared]:
    """Check again under the write lock what other processes may have changed meanwhile."""
    known = sql.known_trajectories(connection, [item.trajectory.id for item in prepared])
    entering = []
    for item in prepared:
        trajectory = item.trajectory
        if trajectory.id in known:
            continue
        held = sql.claim_mapper(connection, item.group.env, trajectory.provenance.mapper)
        if held == trajectory.provenance.mapper:
            entering.append(item)
        else:
            reason = (
                f"its states were made by mapper '{trajectory.provenance.mapper}', the store's"
                f" states of {item.group.env} by '{held}': collect it again with one version of"
                f" the environment, or use a new store"
            )
            refused.append(Refusal(trajectory.id, "mapper", reason))
    return entering


def _sightings(
    connection: sqlite3.Connection, entering: Sequence[Prepared]
) -> tuple[list[sql.Sighting], list[sql.Sighting]]:
    """Store the records, and part their steps into new ones and repeats."""
    codes = {group: sql.group_code(connection, group) for group in {i.group for i in entering}}
    stored = sql.known_keys(
        connection, list({packed.key for item in entering for _, packed in item.steps})
    )
    fresh: list[sql.Sighting] = []
    repeats: list[sql.Sighting] = []
    for item in entering:
        code = codes[item.group]
        seq = sql.insert_trajectory(connection, item.trajectory, group=code, body=item.body)
        for transition, packed in item.steps:
            sighting = sql.Sighting(
                packed=packed,
                group=code,
                dreamed=item.group.source is Source.DREAM,
                trajectory=seq,
                step=transition.index,
            )
            (repeats if packed.key in stored else fresh).append(sighting)
            stored.add(packed.key)
    return fresh, repeats
