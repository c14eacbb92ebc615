import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld.settings import FIRST_SEED, GENERATION, read_settings
from dreamgym.errors import ConfigError
from dreamgym.types import Split


def settings_of(text):
    return read_settings(parse_spec(text))


@pytest.mark.parametrize("kind", sorted(GENERATION))
def test_every_kind_has_working_defaults(kind):
    settings = settings_of(f"textworld/{kind}")
    assert dict(settings.generation) == dict(GENERATION[kind])
    assert dict(settings.counts) == {Split.TRAIN: 100, Split.DEV: 20, Split.TEST: 20}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("textworld/coin_colector", "Did you mean 'coin_collector'"),
        ("textworld/coin_collector?levle=3", "Did you mean 'level'"),
        ("textworld/coin_collector?level=301", "1 to 300"),
        ("textworld/coin_collector?level=160", "120 rooms"),
        ("textworld/treasure_hunter?level=0", "1 to 30"),
        ("textworld/simple?rewards=many", "dense, balanced, sparse"),
        ("textworld/simple?goal=vague", "detailed, brief, none"),
        ("textworld/cooking?go=2", "1, 6, 9, 12"),
        ("textworld/cooking?recipe=1&take=2", "0 to 1"),
        ("textworld/cooking?recipe=6", "1 to 5"),
        ("textworld/cooking?maxSteps=0", "1 to 1000000"),
        ("textworld/cooking?train=1000001", "0 to 1000000"),
        ("textworld/cooking?open=perhaps", "yes or no"),
    ],
)
def test_what_cannot_be_generated_is_refused_with_the_choices(text, words):
    with pytest.raises(ConfigError, match=words):
        settings_of(text)


@settings(deadline=None)
@given(st.integers(0, 1_000_000), st.integers(0, 1_000_000))
def test_seeds_of_splits_never_meet_whatever_their_sizes(train, dev):
    assert FIRST_SEED[Split.TRAIN] + train <= FIRST_SEED[Split.DEV]
    assert FIRST_SEED[Split.DEV] + dev <= FIRST_SEED[Split.TEST]


def test_ids_name_the_game_and_neither_split_sizes_nor_step_limits():
    small = settings_of("textworld/treasure_hunter?level=7")
    large = settings_of("textworld/treasure_hunter?level=7&train=500&maxSteps=9")
    assert small.task_id(Split.TRAIN, 3) == large.task_id(Split.TRAIN, 3)
    assert small.task_id(Split.TRAIN, 3) == "textworld/treasure_hunter?level=7#train-3"
    assert small.recipe(Split.TRAIN, 3) == large.recipe(Split.TRAIN, 3)


def test_recipes_that_differ_have_folders_of_their_own():
    names = {
        settings_of(f"textworld/{query}").recipe(split, seed).name
        for query in ("cooking?cut=0", "cooking?cook=0", "coin_collector", "treasure_hunter")
        for split in Split
        for seed in (0, 1)
    }
    assert len(names) == 4 * 3 * 2
