"""The collect job: a store that begins as a copy of another."""

import asyncio

import pytest

from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.collect import run_collect
from dreamgym.replay import open_store
from dreamgym.runs import open_run


def collected(path, *more, resume=False):
    config = load_config(
        settings=["env.spec='py/stairs_engine:make_engine'", "env.workers=1",
                  "collect.episodes=4", "collect.max_steps=6", *more]
    )  # fmt: skip
    run = open_run(path, config="", about={}, resume=resume)
    try:
        return asyncio.run(run_collect(config, run))
    finally:
        run.close()


def names(store):
    with open_store(store) as opened:
        return opened.trajectory_ids()


def test_a_copy_grows_and_the_first_store_stays_as_it_is(tmp_path):
    first = collected(tmp_path / "first").store
    before, content = names(first), first.read_bytes()
    more = ("seed=9", "collect.policy='random'", f"collect.begin_with='{first}'")
    grown = collected(tmp_path / "grown", *more)
    assert grown.store == tmp_path / "grown/experience.sqlite"
    assert grown.summary.episodes == 4, "what was copied is not this run's"
    assert names(grown.store) > before
    assert len(names(grown.store)) == 8
    assert first.read_bytes() == content
    again = collected(tmp_path / "grown", *more, resume=True)
    assert names(again.store) == names(grown.store)


def test_a_copy_goes_nowhere_but_into_the_run(tmp_path):
    first = collected(tmp_path / "first").store
    both = (f"collect.begin_with='{first}'", f"replay.store='{tmp_path / 'x.sqlite'}'")
    with pytest.raises(ConfigError, match="give one of them"):
        collected(tmp_path / "other", *both)
