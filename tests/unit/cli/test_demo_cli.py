"""`dreamgym demo`: what it refuses before it begins, and what it then says one can do."""

import sys

import pytest
from typer.testing import CliRunner

from dreamgym.cli.main import app
from dreamgym.config import dump_toml, load_config
from dreamgym.errors import ConfigError, RunDirError
from dreamgym.runs import open_run

CORRIDOR = "py/coin_corridor:make_engine"


@pytest.fixture
def demo(monkeypatch):
    """The command, as it is typed."""

    def run(*words):
        typed = ["demo", "--env", CORRIDOR, *words]
        monkeypatch.setattr(sys, "argv", ["dreamgym", *typed])
        return CliRunner(env={"NO_COLOR": "1"}).invoke(app, typed, catch_exceptions=False)

    return run


def leave_run(path, *settings, command="demo"):
    config = load_config(preset="demo", settings=[f"env.spec='{CORRIDOR}'", *settings])
    about = {"command": f"dreamgym {command}"}
    return open_run(path, config=dump_toml(config), about=about, resume=False)


def test_nothing_is_thrown_away_for_a_demo_that_cannot_begin(demo, tmp_path):
    leave_run(tmp_path / "here").close()
    with pytest.raises(ConfigError, match="give it some transitions"):
        demo("--out", str(tmp_path / "here"), "--fresh", "--set", "rl.then_real=0")
    assert (tmp_path / "here/run.json").is_file()


def refusal(demo, place, *words):
    with pytest.raises(RunDirError) as told:
        demo("--out", str(place), *words)
    return str(told.value)


def test_to_start_anew_is_offered_only_where_it_helps(demo, tmp_path):
    leave_run(tmp_path / "other", "seed=5").close()
    told = refusal(demo, tmp_path / "other")
    assert "was made with other settings: seed = 0 (was seed = 5)" in told
    assert told.endswith("or throw it away with --fresh")
    leave_run(tmp_path / "fitted", command="fit").close()
    told = refusal(demo, tmp_path / "fitted")
    assert "is a run of `dreamgym fit`" in told and "--fresh" not in told
    going = leave_run(tmp_path / "going")
    assert refusal(demo, tmp_path / "going").endswith("in use by another process")
    going.close()
