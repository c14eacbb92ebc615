"""What a split shares with training, counted on an environment where the answer is known."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from dreamgym.envs.overlap import Overlap, measure_overlap
from dreamgym.envs.world import open_world
from dreamgym.types import Split


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    return tmp_path / "overlap"


def measure(
    fault: str = "", split: Split = Split.TEST, *, limit: int = 100, seconds: float = 60.0
) -> Overlap:
    async def run() -> Overlap:
        async with open_world(f"py/broken_engines:make_engine?fault={fault}", workers=2) as world:
            return await measure_overlap(world, split, limit=limit, seconds=seconds)

    return asyncio.run(run())


APART = Overlap(
    split=Split.TEST,
    tasks=5,
    all_tasks=5,
    train_tasks=5,
    all_train_tasks=5,
    first_states=5,
    shared_first_states=0,
    shared_goals=0,
    tasks_with_shared_entities=5,
    entities=7,
    shared_entities=7,
)


def test_splits_that_share_only_things() -> None:
    found = measure()
    assert found == APART
    assert found.entity_share == 1.0
    assert found.describe() == (
        "held out: 0 of 5 test tasks share a first state with 5 train tasks; "
        "0 share a goal; 7 of 7 entities also occur in training, in 5 tasks"
    )


def test_splits_that_are_the_same() -> None:
    found = measure("shared keys")
    assert (found.shared_first_states, found.shared_goals) == (5, 5)
    assert found.describe().startswith("NOT held out: 5 of 5 test tasks share a first state")


def test_a_limit_is_told() -> None:
    found = measure(limit=2)
    assert (found.tasks, found.train_tasks, found.entities) == (2, 2, 4)
    assert "0 of 2 test tasks (of 5) share a first state with 2 of 5 train" in found.describe()


def test_nothing_is_kept_of_an_engine_under_the_users_hands(cache: Path) -> None:
    assert measure() == APART
    assert not list(cache.iterdir())


def test_what_was_seen_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dreamgym.envs.overlap._KEPT", frozenset({"py"}))
    nothing = measure(seconds=0.0)
    assert (nothing.tasks, nothing.train_tasks, nothing.entity_share) == (0, 0, 0.0)
    assert nothing.describe() == (
        "held out: not known, since 0 test and 0 train tasks were looked at"
    )
    measure(limit=2)
    assert measure(seconds=0.0).tasks == 2
    assert measure() == APART
    assert measure(seconds=0.0) == APART
    (kept,) = cache.iterdir()
    kept.write_text("{broken")
    assert measure(seconds=0.0).tasks == 0
    assert measure() == APART


def test_training_itself_is_described() -> None:
    assert measure(split=Split.TRAIN).describe() == (
        "train: 5 tasks have 5 different first states and mention 7 entities"
    )


def test_tasks_that_break_are_not_counted() -> None:
    found = measure("collapsed")
    assert (found.tasks, found.all_tasks, found.train_tasks) == (4, 5, 4)
    assert found.shared_first_states == 0


def test_no_entities_no_share() -> None:
    unnamed = replace(APART, entities=0, shared_entities=0)
    assert unnamed.entity_share == 0.0
    assert unnamed.describe().endswith("no entities are named")
