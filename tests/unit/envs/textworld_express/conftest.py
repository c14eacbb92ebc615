"""Engines for the TextWorldExpress tests: all in one Java process, kept for the session."""

from importlib.util import find_spec

import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld_express.engine import TwxEngine
from dreamgym.envs.textworld_express.java import Jvm
from dreamgym.extras import install_command
from dreamgym.types import Split


@pytest.fixture(scope="session")
def twx(tmp_path_factory):
    """Keep task lists out of the user's cache, and say why nothing runs without the engine."""
    if find_spec("textworld_express") is None:
        pytest.skip(f"TextWorldExpress is not installed: {install_command('twx')}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DREAMGYM_CACHE", str(tmp_path_factory.mktemp("twx-cache")))
        yield


@pytest.fixture(scope="session")
def jvm(twx):
    """Return a bare Java process, to speak to the engine itself."""
    machine = Jvm()
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def engine_of(jvm):
    """Return a function that gives the engine of a spec, made once."""
    engines = {}

    def get(spec):
        if spec not in engines:
            engines[spec] = TwxEngine(parse_spec(spec), jvm=jvm)
        return engines[spec]

    return get


@pytest.fixture
def play(engine_of):
    """Return a function that opens a game of a spec's split and begins it."""
    opened = []

    def begin(spec, index=0, split=Split.TEST):
        engine = engine_of(spec)
        game = engine.open(engine.tasks(split)[index])
        opened.append(game)
        return game, game.reset(0)

    yield begin
    for game in opened:
        game.close()
