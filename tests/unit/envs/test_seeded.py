"""Engines whose tasks are seeds."""

from __future__ import annotations

import pytest

from dreamgym.envs.registry import make_engine
from dreamgym.envs.seeded import LARGEST_SPLIT, SeededEngine, read_seed, seeded_tasks
from dreamgym.envs.spec import parse_spec, read_params
from dreamgym.errors import ConfigError
from dreamgym.protocols import Engine, Game
from dreamgym.types import Split, Task

SPEC = parse_spec("py/misbehaving:make_engine")


def play(task: Task, seed: int) -> Game:
    assert seed == int(task.key)
    return make_engine(str(SPEC)).open(task)


def test_a_function_becomes_an_engine() -> None:
    engine = SeededEngine(
        SPEC, play, version="ledger 2", mapper="m", entities=lambda opening: ["pen", "pen"]
    )
    assert isinstance(engine, Engine)
    assert (engine.version, engine.mapper) == ("ledger 2", "m")
    assert [len(engine.tasks(split)) for split in Split] == [1000, 100, 100]
    opening = engine.open(engine.tasks(Split.DEV)[3]).reset(0)
    assert opening.observation.text.startswith("10000003/0")
    assert engine.entities(opening) == {"pen"}
    engine.close()


def test_splits_grow_without_meeting() -> None:
    small = seeded_tasks("x", Split.TRAIN, count=3)
    assert [task.id for task in small] == ["x#0", "x#1", "x#2"]
    assert seeded_tasks("x", Split.TRAIN, count=5)[:3] == small
    assert read_seed(seeded_tasks("x", Split.DEV, count=1)[0]) == LARGEST_SPLIT
    with pytest.raises(ConfigError, match="train=-1 is not between 0 and 10000000"):
        seeded_tasks("x", Split.TRAIN, count=-1)
    with pytest.raises(ConfigError, match="is not between"):
        seeded_tasks("x", Split.TRAIN, count=LARGEST_SPLIT + 1)


@pytest.mark.parametrize("key", ["", "seven", "-1", "1.0", "10000000", "\u00b2"])
def test_a_key_that_is_no_seed_of_its_split_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="is no seed of the train split"):
        read_seed(Task("id", "x", key, Split.TRAIN))


def test_parameters_that_nobody_reads_are_refused() -> None:
    spec = parse_spec("py/misbehaving:make_engine?drawers=5")
    with pytest.raises(ConfigError, match="unknown parameter 'drawers'"):
        SeededEngine(spec, play, version="1")
    params = read_params(spec, {"drawers": 3})
    assert SeededEngine(spec, play, version="1", params=params).tasks(Split.DEV)
