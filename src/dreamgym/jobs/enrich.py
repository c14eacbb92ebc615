"""A dream that remembers what is dreamt in it, as the paper's replay buffer grows by every step.

References may then come from the policy's own dreamt episodes. What is on record of a task, the
places that are told verbatim, stays what was really seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dreamgym import build
from dreamgym.config import ReplayConfig
from dreamgym.dreams import Dream
from dreamgym.jobs.practice import keep_episodes
from dreamgym.replay import copy_store
from dreamgym.replay.snapshot import Snapshot
from dreamgym.rollout.groups import Group, ended_unknown
from dreamgym.types import Source, Trajectory

BY = "dreamt@"
"""Who made a remembered episode, before the number of its step."""


class GrowingMemory:
    """The store that a dream remembers with, copied, and what was dreamt since.

    Args:
        dream: looks things up here from now on.
        path: where the copy lies; what it holds of later steps is forgotten.
        made: the steps of the training that are made: a step that is repeated after a crash must
            find what it found the first time.
    """

    def __init__(self, dream: Dream, path: Path, *, made: int) -> None:
        how = ReplayConfig(embedder=dream.card.embedder)
        earlier = [one for one in _dreamt(path, how) if _step_of(one) < made]
        # What was dreamt is in the old file until the new one holds it, too.
        growing = path.with_name(f"{path.name}.new")
        copy_store(Path(dream.card.store), growing)
        with build.make_store(growing, how) as store:
            keep_episodes(store, earlier)
        copy_store(growing, path)
        growing.unlink()
        self._dream = dream
        self._store = build.make_store(path, how)
        self._snapshot: Snapshot | None = None
        real = self._store.trajectories(source=Source.REAL, env=dream.card.env)
        self._mapper = next(iter(real)).provenance.mapper
        self._renew()

    def remember(self, step: int, groups: Sequence[Group]) -> None:
        """Remember the episodes of a step, but for those that broke or that nobody could tell."""
        keep_episodes(
            self._store,
            [
                replace(
                    one,
                    provenance=replace(
                        one.provenance, behaviour=f"{BY}{step}", mapper=self._mapper
                    ),
                )
                for group in groups
                for one in group.episodes
                if not ended_unknown(one)
            ],
        )
        self._renew()

    def _renew(self) -> None:
        old, self._snapshot = self._snapshot, self._store.snapshot(env=self._dream.card.env)
        self._dream.world.memory = self._snapshot
        self._dream.world.forget()
        if old is not None:
            old.close()

    def close(self) -> None:
        """Let go of the copy; it stays where it is."""
        if self._snapshot is not None:
            self._snapshot.close()
        self._store.close()


def _dreamt(path: Path, how: ReplayConfig) -> list[Trajectory]:
    if not path.is_file():
        return []
    with build.make_store(path, how) as store:
        return list(store.trajectories(source=Source.DREAM))


def _step_of(one: Trajectory) -> int:
    return int(one.provenance.behaviour.removeprefix(BY))
