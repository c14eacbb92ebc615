"""A copy of a store: whole, of this moment, and apart from the original."""

import pytest

from dreamgym.errors import ReplayError
from dreamgym.replay import copy_store, open_store


def test_a_copy_holds_what_there_is_and_goes_its_own_way(tmp_path, walk):
    first, second, third = (walk(name, "hall", "attic") for name in "abc")
    with open_store(tmp_path / "old.sqlite") as old:
        old.add([first])
        copy_store(old.path, tmp_path / "new" / "copy.sqlite")  # while the old one is open
        old.add([second])
        with open_store(tmp_path / "new" / "copy.sqlite") as copy:
            copy.add([third])
            assert [one.id for one in copy.trajectories()] == ["a", "c"]
        assert [one.id for one in old.trajectories()] == ["a", "b"]


def test_a_copy_that_was_cut_off_is_not_taken_for_one(tmp_path, walk):
    with open_store(tmp_path / "old.sqlite") as old:
        old.add([walk("a", "hall", "attic")])
    (tmp_path / "copy.sqlite.part").write_bytes(b"half of it")
    copy_store(tmp_path / "old.sqlite", tmp_path / "copy.sqlite")
    with open_store(tmp_path / "copy.sqlite") as copy:
        assert [one.id for one in copy.trajectories()] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.sqlite", "old.sqlite"]


def test_nothing_cannot_be_copied(tmp_path):
    with pytest.raises(ReplayError, match="no experience store at"):
        copy_store(tmp_path / "none.sqlite", tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


def test_what_is_no_store_is_not_copied(tmp_path):
    (tmp_path / "notes").write_text("not a database, but long enough to be read as one" * 20)
    with pytest.raises(ReplayError, match="not an experience store"):
        copy_store(tmp_path / "notes", tmp_path / "copy.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
