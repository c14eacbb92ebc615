"""The fit job: what it refuses to begin with, when it stops, and what it learns from."""

import json

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


def test_without_progress_it_stops_early_and_keeps_the_best(tmp_path):
    path = tmp_path / "store.sqlite"
    with open_store(path) as store:
        store.add([played(number) for number in range(8)])
    fitted = fit_of(
        tmp_path, f"replay.store='{path}'", "fit.steps=60", "fit.eval_every=1", "fit.patience=2",
        "fit.learning_rate=2.0", "fit.tokens_per_step=256", "fit.held_out_share=0.3",
        "fit.rename_share=0.5", "fit.threads=1",
    )  # fmt: skip
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["stopped_early"]
    assert result["steps"] == result["best_step"] + 2 < 60
    assert len(result["held_out"]) == result["steps"]
    assert 0 < fitted.lessons < 40, "some tasks are held out"
    assert (tmp_path / "run/dream.json").exists()
