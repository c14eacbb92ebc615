"""What games share is bounded: houses, interned facts, libraries and the copies they come from."""

import os
import time

import pytest

from dreamgym.envs.alfworld import workshop as module
from dreamgym.envs.alfworld.generated import GeneratedGames, Recipe
from dreamgym.envs.alfworld.libraries import borrow_library, return_library
from dreamgym.files import cache_dir
from dreamgym.types import Split

pytestmark = pytest.mark.alfworld


def test_few_houses_are_kept_and_games_in_progress_go_on(upstream, workshop, monkeypatch):
    monkeypatch.setattr(module, "_HOUSES_KEPT", 2)
    monkeypatch.setattr(module, "_FACTS_INTERNED", 0)
    source = GeneratedGames("spec", upstream, Recipe(counts=((Split.DEV, 4),)))
    first = None
    for task in source.tasks(Split.DEV):
        simulation = workshop.simulate(task.key, lambda task=task: source.read(task))
        first = first or simulation
    assert len(workshop._houses) == 2
    assert [first.step(command) for command in workshop.planner.plan(first)]
    assert first.won


def test_a_library_is_handed_on_and_not_loaded_anew(upstream, monkeypatch):
    library = borrow_library(upstream)
    return_library(upstream, library)
    monkeypatch.setattr(upstream.downward, "load_lib", None)
    assert borrow_library(upstream) is library
    return_library(upstream, library)


def test_copies_left_by_a_killed_process_are_swept_up(upstream, monkeypatch):
    old, new = (cache_dir("alfworld/loading") / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    monkeypatch.setattr(upstream.downward, "_dreamgym_idle", [], raising=False)
    borrow_library(upstream)
    assert (old.exists(), new.exists()) == (False, True)
    new.rmdir()
