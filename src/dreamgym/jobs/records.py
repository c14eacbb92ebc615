"""The import and export jobs: trajectories between files and an experience store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dreamgym.records import ImportReport, export_records, import_records
from dreamgym.replay import ExperienceStore
from dreamgym.types import Source, Split, Trajectory

BATCH = 500
"""Trajectories per transaction."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import put into a store."""

    report: ImportReport
    stored: int
    known: int
    """Were in the store already: importing twice changes nothing."""
    transitions: int
    refused: tuple[tuple[str, int], ...]
    """What the store kept out, by rule."""


def run_import(
    paths: Sequence[Path],
    open_store: Callable[[], ExperienceStore],
    *,
    format: str | None = None,
    env: str | None = None,
    split: Split = Split.TRAIN,
    max_bad_share: float = 0.0,
) -> Taken:
    """Read files into a store, which is opened only after all were found good enough."""
    stored = known = transitions = 0
    refused: Counter[str] = Counter()
    with import_records(
        paths, format=format, env=env, split=split, max_bad_share=max_bad_share
    ) as imported:
        with open_store() as store:
            for batch in _batches(iter(imported)):
                done = store.add(batch)
                stored += done.trajectories
                known += done.known
                transitions += done.transitions
                refused.update(done.refused_by_rule)
        return Taken(imported.report, stored, known, transitions, tuple(refused.most_common()))


def run_export(
    store: ExperienceStore,
    path: Path,
    *,
    format: str,
    source: Source | None = None,
    split: Split | None = None,
    only_won: bool = False,
    overwrite: bool = False,
) -> int:
    """Write a store's trajectories to a file; return how many rows it has."""
    chosen = store.trajectories(source=source, split=split)
    if only_won:
        chosen = (trajectory for trajectory in chosen if trajectory.success)
    return export_records(chosen, path, format=format, overwrite=overwrite)


def _batches(trajectories: Iterator[Trajectory]) -> Iterator[list[Trajectory]]:
    while batch := list(islice(trajectories, BATCH)):
        yield batch
