"""Games for the TextWorld tests: compiled once, kept between runs in pytest's own cache folder."""

from importlib.util import find_spec

import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld.engine import make_engine, prepare_games
from dreamgym.extras import install_command
from dreamgym.types import Split


@pytest.fixture(scope="session")
def textworld_cache(pytestconfig):
    if find_spec("textworld") is None:
        pytest.skip(f"TextWorld is not installed: {install_command('textworld')}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DREAMGYM_CACHE", str(pytestconfig.cache.mkdir("textworld-games")))
        yield


@pytest.fixture(scope="session")
def open_games(textworld_cache):
    """Return a function that opens the first games of a spec's split, compiled all at once."""

    def open_first(spec, count, split=Split.TEST):
        engine = make_engine(parse_spec(spec))
        prepare_games(spec, split, count=count)
        return [engine.open(task) for task in engine.tasks(split)[:count]]

    return open_first


@pytest.fixture
def play(open_games):
    """Return a function that opens one game of a spec, begun."""
    opened = []

    def open_one(spec, split=Split.TEST):
        (game,) = open_games(spec, 1, split)
        opened.append(game)
        return game, game.reset(0)

    yield open_one
    for game in opened:
        game.close()
