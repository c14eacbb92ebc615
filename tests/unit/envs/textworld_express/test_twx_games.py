import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld_express.engine import make_engine
from dreamgym.envs.textworld_express.games import GENERATION, MAX_STEPS, place_of, read_settings
from dreamgym.envs.textworld_express.java import Server
from dreamgym.errors import ConfigError


def settings(text):
    return read_settings(parse_spec(text))


def test_the_eight_games_are_the_engines(jvm):
    names = jvm.call(Server(jvm)._target, "getGameNames")
    assert set(jvm.call("z:java.lang.String", "join", f"s|\nr{names}\n").split("|")) == set(
        GENERATION
    )
    assert set(MAX_STEPS) == set(GENERATION)


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_our_defaults_are_the_engines(jvm, game):
    plain, given = Server(jvm), Server(jvm)
    plain.load(game, "")
    given.load(game, settings(f"twx/{game}").engine_params)
    assert [plain.generate(seed, "train") for seed in range(3)] == [
        given.generate(seed, "train") for seed in range(3)
    ]


def test_parameters_reach_the_engine():
    found = settings("twx/coin?numLocations=6&includeDoors=0&maxSteps=9&dev=7")
    assert found.engine_params == (
        "numLocations=6,numDistractorItems=0,includeDoors=0,limitInventorySize=1"
    )
    assert (found.max_steps, found.counts) == (9, {"train": 1000, "dev": 7, "test": 200})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("twx/cion", "unknown TextWorldExpress game 'cion'. Did you mean 'coin'?"),
        ("twx/", "unknown TextWorldExpress game ''"),
        ("twx/coin?numLocation=6", "unknown parameter 'numLocation'. Did you mean 'numLocations'?"),
        ("twx/sorting?numLocations=6", "unknown parameter 'numLocations'"),
        ("twx/coin?numLocations=many", "numLocations is a whole number, not 'many'"),
        ("twx/coin?includeDoors=2", "includeDoors is yes or no, not '2'"),
        ("twx/coin?maxSteps=0", "maxSteps is 0; it must be 1 to 10000"),
        ("twx/coin?train=-1", "train is -1; it must be 0 to 10000"),
        ("twx/coin?holdout=sed", "unknown holdout 'sed'. Did you mean 'seed'?"),
        ("twx/coin?fold=tran", "unknown fold 'tran'. Did you mean 'train'?"),
        ("twx/mapreader?numLocations=49", "names for 48 rooms only"),
    ],
)
def test_wrong_specs_are_explained(text, words):
    with pytest.raises(ConfigError) as caught:
        settings(text)
    assert words in str(caught.value)


def test_what_only_the_engine_can_refuse_is_a_config_error(twx):
    with pytest.raises(ConfigError, match="less than or equal to 11"):
        make_engine(parse_spec("twx/coin?numLocations=99"))


def test_a_long_game_has_many_steps():
    assert settings("twx/simonsays").max_steps == 20
    assert settings("twx/simonsays?gameLength=100").max_steps == 200
    assert settings("twx/simonsays?gameLength=100&maxSteps=7").max_steps == 7


def test_the_place_names_only_what_changes_a_start():
    spec = parse_spec("twx/coin?numLocations=6&includeDoors=yes&maxSteps=5&train=3&holdout=seed")
    assert place_of(spec) == "twx/coin?numLocations=6"
