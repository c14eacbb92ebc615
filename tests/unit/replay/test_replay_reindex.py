"""Reindexing: another embedder for a store that exists."""

from __future__ import annotations

import pytest

from dreamgym.errors import ReplayError
from dreamgym.replay import Capacity, open_store
from dreamgym.replay import reindex as module
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.reindex import reindex
from dreamgym.types import Source


@pytest.fixture
def path(tmp_path, walk):
    path = tmp_path / "experience.sqlite"
    with open_store(path) as store:
        store.add([walk(f"t{n}", f"room {n}", f"hall {n}", "garden") for n in range(10)])
        store.add([walk(f"d{n}", f"dream {n}", "garden", source=Source.DREAM) for n in range(10)])
        store.evict(Capacity(dream=5))
    return path


def finds(store, number):
    (hit,) = store.search(f"You are in the room {number}.", f"go to hall {number}", k=1)
    return hit.transition.id == f"t{number}#0" and hit.similarity > 0.99


def test_the_store_opens_with_the_new_embedder_only(path):
    assert reindex(path, embedder=HashingEmbedder(64)) == 25
    with open_store(path, embedder=HashingEmbedder(64)) as store:
        assert all(finds(store, n) for n in range(10))
    with pytest.raises(ReplayError, match="hashing-1-64"):
        open_store(path)
    reindex(path, embedder=HashingEmbedder(), action_weight=0.5)
    with open_store(path, action_weight=0.5) as store:
        assert finds(store, 4)


class Failing(HashingEmbedder):
    """Works for a while."""

    def __init__(self, texts: int) -> None:
        super().__init__(64)
        self.left = texts
        self.done = 0

    def embed(self, texts):
        if self.left < len(texts):
            raise OSError("the line is dead")
        self.left -= len(texts)
        self.done += len(texts)
        return super().embed(texts)


def test_an_interrupted_job_leaves_the_store_usable_and_goes_on(path, monkeypatch, walk):
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    with pytest.raises(ReplayError, match="the line is dead"):
        reindex(path, embedder=Failing(20))
    with open_store(path) as store:
        assert finds(store, 9)
        store.add([walk("t10", "room 10", "hall 10")])
        store.evict(Capacity(dream=1))
    second = Failing(1000)
    assert reindex(path, embedder=second) == 22
    assert second.done < 45
    with open_store(path, embedder=HashingEmbedder(64)) as store:
        assert all(finds(store, n) for n in range(11))


def test_a_job_with_a_third_embedder_starts_over(path, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    with pytest.raises(ReplayError, match="the line is dead"):
        reindex(path, embedder=Failing(20))
    assert reindex(path, embedder=HashingEmbedder(32)) == 25
    with open_store(path, embedder=HashingEmbedder(32)) as store:
        assert all(finds(store, n) for n in range(10))


def test_a_process_with_the_old_embedder_is_told(path, walk):
    with open_store(path) as store:
        assert finds(store, 3)
        reindex(path, embedder=HashingEmbedder(64))
        with pytest.raises(ReplayError, match="hashing-1-64"):
            finds(store, 3)
        with pytest.raises(ReplayError, match="hashing-1-64"):
            store.add([walk("late", "hall", "attic")])
        assert not store.has("late")


def test_there_must_be_a_store(tmp_path):
    with pytest.raises(ReplayError, match="no experience store"):
        reindex(tmp_path / "none.sqlite", embedder=HashingEmbedder())
