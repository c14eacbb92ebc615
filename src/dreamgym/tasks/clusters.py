"""Clusters of similar tasks: the groups of Eq. 7 where episodes do not come in groups (PPO).

Plain k-means on unit vectors, with centres spread out at the start: the same tasks in the same
order always fall into the same clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dreamgym.protocols import Embedder, Vectors
from dreamgym.replay.embed import unit_rows
from dreamgym.tasks.pool import Entry
from dreamgym.tasks.value import group_value
from dreamgym.tasks.vectors import TextVectors

_ROUNDS = 25
_THE_SAME = 0.999
"""Texts more alike than this need no centre of their own."""


def cluster(vectors: Vectors, count: int) -> list[int]:
    """Return the cluster of each row; at most `count` clusters, fewer where rows are equal."""
    if not len(vectors):
        return []
    centres = _spread(vectors, count)
    labels = _nearest(vectors, centres)
    for _ in range(_ROUNDS):
        for number in range(len(centres)):
            members = vectors[labels == number]
            if len(members):
                centres[number] = unit_rows(members.sum(axis=0, keepdims=True))[0]
        again = _nearest(vectors, centres)
        if np.array_equal(again, labels):
            break
        labels = again
    return [int(label) for label in labels]


def _spread(vectors: Vectors, count: int) -> Vectors:
    """Return centres to begin with: each as far as can be from those before it."""
    chosen = [0]
    nearest = vectors @ vectors[0]
    while len(chosen) < min(count, len(vectors)):
        farthest = int(np.argmin(nearest))
        if nearest[farthest] >= _THE_SAME:
            break
        chosen.append(farthest)
        nearest = np.maximum(nearest, vectors @ vectors[farthest])
    return np.array(vectors[chosen], dtype=np.float32)


def _nearest(vectors: Vectors, centres: Vectors) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.argmax(vectors @ centres.T, axis=1)
    return found


class TaskClusters:
    """The clusters of a pool, worked out again when it has changed."""

    def __init__(self, embedder: Embedder, *, count: int) -> None:
        self._vectors = TextVectors(embedder)
        self._count = count
        self._texts: tuple[str, ...] = ()
        self._labels: dict[str, int] = {}

    def labels(self, entries: Sequence[Entry]) -> dict[str, int]:
        """Return the cluster of each task, by id; tasks that nobody has seen yet are in none."""
        told = [entry for entry in entries if entry.text]
        texts = tuple(entry.text for entry in told)
        if texts != self._texts:
            self._texts = texts
            found = cluster(self._vectors.rows(texts), self._count)
            self._labels = {entry.task.id: label for entry, label in zip(told, found, strict=True)}
        return self._labels

    def values(self, entries: Sequence[Entry]) -> dict[str, tuple[float | None, int]]:
        """Return the value of each task's cluster, and the step that it was last seen at.

        The group of Eq. 7 are the last outcomes of all tasks of a cluster.
        """
        labels = self.labels(entries)
        rewards: dict[int, list[float]] = {}
        seen: dict[int, int] = {}
        for entry in entries:
            label = labels.get(entry.task.id)
            if label is not None and entry.recent:
                rewards.setdefault(label, []).extend(entry.recent[-1].rewards)
                seen[label] = max(seen.get(label, 0), entry.recent[-1].step)
        return {
            name: (group_value(rewards.get(label, ())), seen.get(label, 0))
            for name, label in labels.items()
        }
