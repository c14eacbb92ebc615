"""Translations are kept, repaired when damaged, and bounded in number."""

import os
import time

import pytest
from upstream_games import game_data

from dreamgym.envs.alfworld import translate
from dreamgym.envs.alfworld.translate import Translator

pytestmark = pytest.mark.alfworld


@pytest.fixture
def problem(upstream):
    data = next(game_data(upstream, 1))
    return data["pddl_domain"], data["pddl_problem"]


def test_a_translation_is_made_once(upstream, tmp_path, problem, monkeypatch):
    first = Translator(upstream, tmp_path).translate(*problem)
    monkeypatch.setattr(upstream.downward, "pddl2sas", None)
    again = Translator(upstream, tmp_path).translate(*problem)
    assert again.sas == first.sas
    for name in ("actions", "init", "objects", "types"):
        assert len(getattr(again.task, name)) == len(getattr(first.task, name))


def test_a_damaged_file_is_made_again(upstream, tmp_path, problem):
    sas = Translator(upstream, tmp_path).translate(*problem).sas
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"torn")
    assert Translator(upstream, tmp_path).translate(*problem).sas == sas
    assert path.read_bytes() != b"torn"


def test_old_files_and_torn_ones_go(upstream, tmp_path, problem, monkeypatch):
    monkeypatch.setattr(translate, "_FILES_KEPT", 3)
    for age in range(5):
        path = tmp_path / f"{age}.sas.z"
        path.touch()
        os.utime(path, (time.time() - age * 100 - 100,) * 2)
    for name, age in ((".torn.sas.z.x", 10_000), (".fresh.sas.z.x", 1)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    Translator(upstream, tmp_path).translate(*problem)
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 4
    assert {"0.sas.z", "1.sas.z", ".fresh.sas.z.x"} < names


def test_a_cache_that_cannot_be_written_costs_only_time(upstream, tmp_path, problem):
    blocked = tmp_path / "file"
    blocked.touch()
    assert Translator(upstream, blocked / "folder").translate(*problem).sas
