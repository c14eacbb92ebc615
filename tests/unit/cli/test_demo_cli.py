"""`dreamgym demo`: what it refuses before it begins, and what it then says one can do."""

import sys

import pytest
from typer.testing import CliRunner

from dreamgym.cli.main import app
from dreamgym.config import dump_toml, load_config
from dreamgym.errors import ConfigError
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
