"""Clusters: like tasks together, always the same way, and their value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.replay.embed import HashingEmbedder, unit_rows
from dreamgym.tasks.clusters import TaskClusters, cluster
from dreamgym.tasks.pool import Entry
from dreamgym.tasks.value import Visit
from dreamgym.types import Split, Task

GOALS = ("boil an egg in the kitchen", "boil an onion in the kitchen", "plant a tree outside",
         "plant a flower outside", "")  # fmt: skip


def entries(*rewards):
    return [
        Entry(
            Task(f"t#{number}", "t", str(number), Split.TRAIN, GOALS[number]),
            recent=(Visit(number, found),) if found is not None else (),
        )
        for number, found in enumerate(rewards)
    ]


def test_like_tasks_are_together():
    labels = TaskClusters(HashingEmbedder(), count=2).labels(entries(*[None] * 5))
    assert labels["t#0"] == labels["t#1"] != labels["t#2"] == labels["t#3"]
    assert "t#4" not in labels


def test_the_value_is_of_all_outcomes_of_a_cluster():
    clusters = TaskClusters(HashingEmbedder(), count=2)
    found = clusters.values(entries((1.0,), (0.0, 0.0, 0.0), (1.0,), None, None))
    assert found["t#0"] == found["t#1"] == (pytest.approx(0.1875), 1)
    assert found["t#2"] == found["t#3"] == (None, 2)
    assert "t#4" not in found


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 8))
def test_clusters_hold_what_is_nearest_to_their_centre(seed, rows, count):
    vectors = unit_rows(np.random.default_rng(seed).normal(size=(rows, 6)))
    labels = cluster(vectors, count)
    assert labels == cluster(vectors, count)
    assert len(set(labels)) <= min(rows, count)
    if rows <= count:
        assert len(set(labels)) == rows


def test_equal_texts_need_one_cluster():
    vectors = unit_rows(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert cluster(vectors, 3) == [0, 0, 1]
    assert cluster(np.zeros((0, 2), dtype=np.float32), 3) == []
