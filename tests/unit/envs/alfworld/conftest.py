"""ALFWorld for tests: a cache folder of its own, engines that get closed, official games."""

import os
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from dreamgym.envs.alfworld.engine import make_engine
from dreamgym.envs.alfworld.memo import install_memo
from dreamgym.envs.alfworld.upstream import load_upstream
from dreamgym.envs.alfworld.workshop import Workshop
from dreamgym.envs.spec import parse_spec
from dreamgym.extras import install_command
from dreamgym.types import Split

ARCHIVE = "alfworld-games-train-valid_seen.tar.xz"
NEIGHBOUR = Path(__file__).parents[5] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def alfworld_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DREAMGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def upstream(alfworld_cache):
    if find_spec("alfworld") is None or find_spec("fast_downward") is None:
        pytest.skip(f"ALFWorld is not installed: {install_command('alfworld')}")
    return load_upstream()


@pytest.fixture
def workshop(upstream):
    """A workshop as an engine has it, memo included."""
    remove = install_memo(upstream)
    shop = Workshop(upstream)
    yield shop
    shop.close()
    remove()


@pytest.fixture
def engine_of(upstream):
    """Return a function that makes the engine of a spec."""
    made = []

    def make(spec):
        made.append(make_engine(parse_spec(spec)))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def play(engine_of):
    """Return a function that opens and resets a game of a spec."""

    def open_one(spec="alfworld/generated", index=0, split=Split.TEST):
        engine = engine_of(spec)
        game = engine.open(engine.tasks(split)[index])
        return game, game.reset(0)

    return open_one


@pytest.fixture(scope="session")
def official_games(tmp_path_factory):
    """A folder of six real training games, one of each task type."""
    place = os.environ.get("DREAMGYM_ALFWORLD_DATA", str(NEIGHBOUR))
    archive = Path(place) if Path(place).is_file() else Path(place) / ARCHIVE
    if not archive.is_file():
        pytest.skip(f"no official games: set DREAMGYM_ALFWORLD_DATA to {ARCHIVE} or its folder")
    folder, kinds = tmp_path_factory.mktemp("official"), set()
    with tarfile.open(archive, "r|xz") as packed:
        for member in packed:
            kind = member.name.split("/")[2].split("-")[0] if member.isfile() else ""
            if kind and kind not in kinds:
                packed.extract(member, folder, filter="data")
                kinds.add(kind)
            if len(kinds) == 6:
                break
    return folder / "json_2.1.1"
