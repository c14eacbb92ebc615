import os

import pytest

from dreamgym.files import cache_dir, write_atomically


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
