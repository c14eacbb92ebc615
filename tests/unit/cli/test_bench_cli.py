"""`dreamgym bench --dry-run`: every command of every suite, and nothing done."""

import shlex

import pytest
from typer.testing import CliRunner

from dreamgym.bench import SUITES, make_suite
from dreamgym.cli.main import app
from dreamgym.errors import ConfigError


def told(*words):
    return CliRunner(env={"NO_COLOR": "1"}).invoke(app, ["bench", *words], catch_exceptions=False)


@pytest.mark.parametrize("name", SUITES)
def test_every_command_is_printed_and_nothing_is_done(name, tmp_path):
    place = tmp_path / "stages"
    done = told(name, "--dry-run", "--seeds", "2", "--stages", str(place), "--no-gate")
    *lines, last = done.stdout.splitlines()
    suite = make_suite(name, seeds=range(2), gate=False)
    expected = [["dreamgym", *stage.command(place)] for stage in suite.stages]
    assert [shlex.split(line) for line in lines] == expected
    assert last == f"{len(suite.stages)} commands, {len(suite.cells)} cells."
    assert not place.exists()


def test_sizes_of_policies_are_columns(tmp_path):
    words = ("table1", "--dry-run", "--seeds", "1", "--env", "coin8", "--arm", "start")
    sizes = ("--model", "3m", "--model", "1m", "--model", "3m")
    lines = told(*words, *sizes, "--out", str(tmp_path)).stdout.splitlines()
    assert [word for line in lines[:-1] if " train " in line
            for word in ("1m", "3m") if f"--model {word}" in line] == ["3m", "1m"]  # fmt: skip
    assert lines[-1] == "5 commands, 2 cells."


def test_seeds_may_be_named(tmp_path):
    words = ("table1", "--dry-run", "--env", "coin8", "--arm", "random", "--out", str(tmp_path))
    lines = told(*words, "--seed", "3", "--seed", "1", "--seed", "3").stdout.splitlines()
    assert ["coin8-1/" in lines[0], "coin8-3/" in lines[1]] == [True, True]
    assert lines[-1] == "2 commands, 2 cells."


def test_a_wrong_name_is_told(tmp_path):
    with pytest.raises(ConfigError, match="unknown suite 'tabel2'"):
        told("tabel2", "--dry-run", "--out", str(tmp_path))
