"""The index in memory and its file, as the store outgrows exact search."""

from __future__ import annotations

import logging
import shutil

import pytest

from dreamgym.replay import Capacity, open_store
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.reindex import reindex
from dreamgym.replay.sidecar import load, sidecar_path
from dreamgym.types import Source

LIMIT = 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "experience.sqlite"


def opened(path, **options):
    return open_store(path, exact_limit=LIMIT, **options)


def many(walk, first, count, **options):
    return [walk(f"t{n}", f"room {n}", f"hall {n}", **options) for n in range(first, first + count)]


def finds(store, number):
    hits = store.search(f"You are in the room {number}.", f"go to hall {number}", k=1)
    return [hit.transition.id for hit in hits] == [f"t{number}#0"]


def test_a_large_store_writes_an_index_file_and_uses_it(path, walk, caplog):
    with opened(path) as store:
        store.add(many(walk, 0, LIMIT))
        assert finds(store, 3)
        assert not sidecar_path(path).exists()
        store.add(many(walk, LIMIT, 1))
        assert finds(store, LIMIT)
    stamp, cells = load(sidecar_path(path))
    assert (stamp.last_row, len(cells.rows)) == (LIMIT + 1, LIMIT + 1)
    written = sidecar_path(path).stat().st_mtime_ns
    with caplog.at_level(logging.INFO, "dreamgym.replay"), opened(path) as store:
        assert all(finds(store, n) for n in range(LIMIT + 1))
        store.add(many(walk, 100, 2))
        assert finds(store, 101)
        assert finds(store, 1)
    assert caplog.records == []
    assert sidecar_path(path).stat().st_mtime_ns == written


def test_the_index_file_grows_with_the_store(path, walk):
    with opened(path) as store:
        store.add(many(walk, 0, 30))
        assert finds(store, 7)
        store.add(many(walk, 30, 30))
        assert finds(store, 7)
        assert finds(store, 59)
        stamp, cells = load(sidecar_path(path))
        assert (stamp.fitted, len(cells.rows)) == (30, 60)
        with store.snapshot() as snapshot:
            store.add(many(walk, 60, 60))
            assert finds(store, 119)
            assert not finds(snapshot, 119)
            assert finds(snapshot, 59)
        assert load(sidecar_path(path))[0].fitted == 120


@pytest.mark.parametrize("damage", ["missing", "torn", "of another store", "of an older copy"])
def test_a_bad_index_file_is_made_again(path, walk, tmp_path, caplog, damage):
    with opened(path) as store:
        store.add(many(walk, 0, 30))
        assert finds(store, 7)
    sidecar = sidecar_path(path)
    if damage == "missing":
        sidecar.unlink()
    elif damage == "torn":
        sidecar.write_bytes(sidecar.read_bytes()[:-9])
    elif damage == "of another store":
        other = tmp_path / "other.sqlite"
        with opened(other) as store:
            store.add(many(walk, 50, 30))
            assert finds(store, 60)
        shutil.copy(sidecar_path(other), sidecar)
    else:
        # The same store took another turn after a backup was brought back.
        backup = tmp_path / "backup.sqlite"
        shutil.copy(path, backup)
        with opened(path) as store:
            store.add(many(walk, 30, 40))
            assert finds(store, 60)
        shutil.copy(backup, path)
        with opened(path) as store:
            store.add(many(walk, 200, 40))
    with caplog.at_level(logging.WARNING, "dreamgym.replay"), opened(path) as store:
        assert finds(store, 7)
        assert damage != "of an older copy" or finds(store, 239)
    assert (damage == "missing") == ("made again" not in caplog.text)
    assert load(sidecar) is not None
    caplog.clear()
    with caplog.at_level(logging.WARNING, "dreamgym.replay"), opened(path) as store:
        assert finds(store, 7)
    assert caplog.records == []


def test_evicted_rows_leave_the_cells_of_every_process(path, walk):
    with opened(path) as one, opened(path) as two:
        one.add(many(walk, 0, 30, source=Source.DREAM))
        assert finds(one, 7)
        assert finds(two, 7)
        one.evict(Capacity(dream=25))
        for store in (one, two):
            assert not finds(store, 3)
            assert finds(store, 7)
        one.evict(Capacity(dream=5))
        for store in (one, two):
            assert not finds(store, 7)
            assert finds(store, 28)
    with opened(path) as store:
        assert not finds(store, 7)
        assert len(store.search("room", "hall", k=30)) == 5


def test_a_process_that_was_away_too_long_reads_everything_again(path, walk, monkeypatch):
    monkeypatch.setattr("dreamgym.replay.store._REMEMBERED", 3)
    with open_store(path) as one, open_store(path) as two:
        one.add(many(walk, 0, 12, source=Source.DREAM))
        assert finds(two, 2)
        one.evict(Capacity(dream=10))
        one.evict(Capacity(dream=4))
        assert not finds(two, 2)
        assert finds(two, 11)
        assert len(two.search("room", "hall", k=30)) == 4


def test_reindexing_makes_the_index_file_anew(path, walk):
    with opened(path) as store:
        store.add(many(walk, 0, 30))
        assert finds(store, 7)
    reindex(path, embedder=HashingEmbedder(64))
    with opened(path, embedder=HashingEmbedder(64)) as store:
        assert finds(store, 7)
        assert load(sidecar_path(path))[1].codes.shape == (30, 64)
