"""The index file beside a large store: used when good, ignored when not."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import fields

import numpy as np
import pytest

from dreamgym.replay.cells import build
from dreamgym.replay.sidecar import Stamp, load, save, sidecar_path

STAMP = Stamp("store", "embedder", last_row=30, last_key="ab", removals=2, fitted=30)


@pytest.fixture
def cells():
    vectors = np.random.default_rng(0).standard_normal((30, 16)).astype(np.float16)
    return build({1: (np.arange(30), vectors)})


@pytest.fixture
def path(tmp_path):
    return sidecar_path(tmp_path / "experience.sqlite")


def test_what_was_saved_is_read(path, cells):
    save(path, STAMP, cells)
    stamp, read = load(path)
    assert stamp == STAMP
    for field in fields(cells):
        assert (getattr(read, field.name) == getattr(cells, field.name)).all()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_none_is_no_complaint(path, caplog):
    assert load(path) is None
    assert caplog.records == []


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other", "header"])
def test_damage_is_noticed_and_told(path, cells, caplog, damage):
    save(path, STAMP, cells)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-5]
    elif damage == "flip":
        content[-7] ^= 4
    elif damage == "empty":
        content = bytearray()
    elif damage == "other":
        content = bytearray(b"something else entirely")
    else:
        content[20] ^= 1
    path.write_bytes(bytes(content))
    with caplog.at_level(logging.WARNING):
        assert load(path) is None
    assert "made again" in caplog.text


def test_a_disk_that_cannot_be_written_does_no_harm(path, cells, caplog):
    path.mkdir()
    with caplog.at_level(logging.WARNING):
        save(path, STAMP, cells)
    assert "could not write" in caplog.text
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_leftovers_of_killed_writers_are_swept(path, cells):
    old, young = path.with_name(f".{path.name}.1"), path.with_name(f".{path.name}.2")
    old.touch()
    young.touch()
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    save(path, STAMP, cells)
    assert not old.exists()
    assert young.exists()
