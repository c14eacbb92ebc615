"""The SQLite file: transactions, waiting, errors."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest

from dreamgym.errors import ReplayError
from dreamgym.replay.database import Database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "experience.sqlite"


@pytest.fixture
def database(path):
    made = Database(path)
    yield made
    made.close()


def notes(database):
    with database.reading() as connection:
        return dict(connection.execute("SELECT name, value FROM meta"))


def test_a_transaction_happens_wholly_or_not_at_all(database):
    with database.writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")

    def torn() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO meta VALUES ('b', '2')")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        torn()
    assert notes(database) == {"a": "1"}


@pytest.mark.parametrize(("setting", "level"), [("normal", 1), ("full", 2)])
def test_how_safely_it_writes(path, setting, level):
    database = Database(path, synchronous=setting)
    with database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_frozen_connection_sees_its_own_moment_and_cannot_write(database, path):
    frozen = Database(path)
    frozen.freeze()
    with database.writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('later', '1')")
    assert notes(frozen) == {}
    assert notes(database) == {"later": "1"}
    with pytest.raises(ReplayError), frozen.writing():
        pass
    frozen.close()


def test_a_writer_waits_for_another_and_then_says_so(path):
    impatient = Database(path, wait_seconds=0.05)
    patient = Database(path)
    started, release = threading.Event(), threading.Event()

    def hold() -> None:
        other = Database(path)
        with other.writing():
            started.set()
            release.wait(10)
        other.close()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait(10)
    with pytest.raises(ReplayError, match="another process has been writing"), impatient.writing():
        pass
    threading.Timer(0.1, release.set).start()
    with patient.writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")
    thread.join()
    assert notes(impatient) == {"a": "1"}
    impatient.close()
    patient.close()


def test_many_may_make_the_same_store_at_once(path):
    failures = []

    def make() -> None:
        try:
            Database(path).close()
        except Exception as error:  # noqa: BLE001 - reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_connection_is_not_carried_over_a_fork(database):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            notes(database)
        except ReplayError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert "open it again" in answer.read()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ReplayError, match="does its folder exist"):
        Database(tmp_path / "nowhere" / "experience.sqlite")


def test_a_damaged_file_is_told(path):
    Database(path).close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    def read() -> None:
        database = Database(path)
        try:
            notes(database)
        finally:
            database.close()

    with pytest.raises(ReplayError, match="the file is damaged"):
        read()


def test_sqlite_knows_what_the_tables_need():
    assert sqlite3.sqlite_version_info >= (3, 37)
