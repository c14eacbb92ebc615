import os
import sqlite3
import threading

import pytest

from dreamgym.files import cache_dir, enter_wal, write_atomically


def test_a_write_replaces_the_whole_file(tmp_path):
    path = tmp_path / "deep" / "x"
    write_atomically(path, "long content")
    write_atomically(path, b"short")
    assert path.read_bytes() == b"short"
    assert os.listdir(path.parent) == ["x"]


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_atomically(path, "old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_the_cache_can_be_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path / "c"))
    assert cache_dir("games") == tmp_path / "c" / "games"
    assert cache_dir("games").is_dir()


def held(path):
    """Somebody else's connection, in the middle of a write in the old journal mode."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    return other


def test_the_journal_mode_changes_once_others_are_done(tmp_path):
    other = held(tmp_path / "x")
    mine = sqlite3.connect(tmp_path / "x", timeout=0)
    later = threading.Timer(0.1, other.execute, ["COMMIT"])
    later.start()
    enter_wal(mine, patience=30)
    later.join()
    assert mine.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    mine.close()
    other.close()


def test_who_never_lets_go_is_not_waited_for_for_ever(tmp_path):
    other = held(tmp_path / "x")
    mine = sqlite3.connect(tmp_path / "x", timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        enter_wal(mine, patience=0.05)
    mine.close()
    other.close()


def test_what_is_written_may_be_read_by_whom_new_files_may(tmp_path):
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "x", "content")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode
