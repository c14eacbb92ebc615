"""The fit job: what it refuses to begin with."""

import pytest

from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.fit import run_fit
from dreamgym.replay import open_store
from dreamgym.runs import open_run
from dreamgym.types import Split
from played_corridors import played


def fit_of(tmp_path, *settings):
    run = open_run(tmp_path / "run", config="", about={}, resume=False)
    try:
        return run_fit(load_config(settings=["fit.steps=1", *settings]), run)
    finally:
        run.close()


def test_without_a_store_there_is_nothing_to_fit(tmp_path):
    with pytest.raises(ConfigError, match="give --store"):
        fit_of(tmp_path)


def test_a_store_without_training_steps_is_refused(tmp_path):
    path = tmp_path / "store.sqlite"
    with open_store(path) as store:
        store.add([played(0, split=Split.DEV)])
    with pytest.raises(ConfigError, match=r"no real trajectory of the train split of py/coin_corr"):
        fit_of(tmp_path, f"replay.store='{path}'")
    assert not (tmp_path / "run/dream.json").exists()


def test_an_unknown_model_is_refused(tmp_path):
    path = tmp_path / "store.sqlite"
    with open_store(path) as store:
        store.add([played(0)])
    with pytest.raises(ConfigError, match="fit.model '7m' is neither"):
        fit_of(tmp_path, f"replay.store='{path}'", "fit.model=7m")
