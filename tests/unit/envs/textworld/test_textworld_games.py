"""The cache of games: whole or absent, whoever is killed and however many build at once."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld import games
from dreamgym.envs.textworld.settings import GAME_FILE, read_settings
from dreamgym.errors import EnvError, MissingDependency
from dreamgym.types import Split

RECIPE = read_settings(parse_spec("textworld/treasure_hunter?level=1")).recipe(Split.TRAIN, 0)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


@pytest.mark.textworld
@pytest.mark.slow
def test_a_killed_build_leaves_no_half_game_and_the_next_one_is_the_same(
    textworld_cache, tmp_path, monkeypatch
):
    whole = content(games.ensure_game(RECIPE))
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    folder = games.games_dir()
    part, ready = folder / f"{RECIPE.name}.part", folder / RECIPE.name
    code = (
        "from dreamgym.envs.spec import parse_spec; from dreamgym.types import Split;"
        "from dreamgym.envs.textworld.settings import read_settings;"
        "from dreamgym.envs.textworld.games import ensure_game;"
        "ensure_game(read_settings(parse_spec('textworld/treasure_hunter?level=1'))"
        ".recipe(Split.TRAIN, 0))"
    )
    builder = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    wait_for(part)
    os.killpg(builder.pid, signal.SIGKILL)
    builder.wait()
    assert not ready.exists()
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(games.ensure_game, [RECIPE, RECIPE]))
    assert built == [ready, ready]
    assert content(ready) == whole
    assert sorted(path.name for path in folder.iterdir()) == [RECIPE.name, f"{RECIPE.name}.lock"]


@pytest.mark.textworld
def test_a_game_that_is_there_is_not_built_again(textworld_cache):
    file = games.ensure_game(RECIPE) / GAME_FILE
    before = file.stat().st_mtime_ns
    assert games.ensure_games([RECIPE, RECIPE]) == 0
    assert file.stat().st_mtime_ns == before


@pytest.mark.textworld
def test_a_failing_generator_is_an_environment_error_with_its_reason(
    textworld_cache, tmp_path, monkeypatch
):
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    (games.games_dir() / f"{RECIPE.name}.lock").mkdir()
    with pytest.raises(EnvError, match=r"treasure_hunter seed 0.*IsADirectoryError"):
        games.ensure_game(RECIPE)


def test_without_textworld_the_fix_is_named(monkeypatch):
    def absent(name):
        raise games.PackageNotFoundError(name)

    monkeypatch.setattr(games, "version", absent)
    with pytest.raises(MissingDependency, match=r"pip install .*\[textworld\]'"):
        games.textworld_version()
