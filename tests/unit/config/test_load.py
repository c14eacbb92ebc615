from pathlib import Path

import pytest

from dreamgym.config import RunConfig, dump_toml, load_config, preset_names
from dreamgym.config.describe import describe
from dreamgym.errors import ConfigError


def test_defaults_need_nothing():
    assert load_config() == RunConfig()


def test_every_shipped_preset_loads():
    assert {"tiny", "demo", "alfworld"} <= set(preset_names())
    for name in preset_names():
        assert load_config(preset=name) != RunConfig()


@pytest.mark.parametrize("name", preset_names())
def test_no_preset_sets_a_time_to_fit_that_its_updates_overrule(name):
    fit = load_config(preset=name).fit
    assert fit.steps == 0 or fit.seconds == RunConfig().fit.seconds


def test_later_sources_win(tmp_path):
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("seed = 1\n[collect]\nepisodes = 10\nnoise = 0.1\n")
    second.write_text("[collect]\nepisodes = 20\n")
    config = load_config(files=[first, second], settings=["collect.noise=0.5", "seed=3"])
    assert (config.seed, config.collect.episodes, config.collect.noise) == (3, 20, 0.5)


def test_written_config_reads_back(tmp_path):
    config = load_config(
        settings=['env.spec=twx/coin?numLocations=6&x="q"', "replay.held_out=true", "seed=7"]
    )
    path = tmp_path / "config.toml"
    path.write_text(dump_toml(config))
    assert load_config(files=[path]) == config


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("collect.epsiodes=3", "unknown setting 'collect.epsiodes'. Did you mean 'episodes'"),
        ("colect.episodes=3", "unknown setting 'colect'. Did you mean 'collect'"),
        ("collect.episodes=many", "collect.episodes is a whole number, not 'many'"),
        ("collect.episodes=0", "must be at least 1"),
        ("collect.episodes=2.5", "whole number"),
        ("collect.episodes=true", "whole number"),
        ("collect.noise=1.5", "between 0 and 1"),
        ("collect.split=tset", "Did you mean 'test'"),
        ("env.time_limit=0", "above 0"),
        ("replay.held_out=1", "true or false"),
        ("collect=3", "collect is a section"),
        ("episodes", "section.name=value"),
        ("=3", "section.name=value"),
    ],
)
def test_wrong_settings_say_what_to_do(setting, message):
    with pytest.raises(ConfigError) as error:
        load_config(settings=[setting])
    assert message in str(error.value)


def test_missing_and_broken_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="no config file at"):
        load_config(files=[Path("nowhere.toml")])
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = ")
    with pytest.raises(ConfigError, match=r"broken\.toml is not TOML"):
        load_config(files=[broken])
    with pytest.raises(ConfigError, match="unknown preset 'tinny'. Did you mean 'tiny'"):
        load_config(preset="tinny")


def test_every_setting_has_a_meaning():
    settings = list(describe(RunConfig()))
    assert "collect.episodes" in {item.name for item in settings}
    assert [item.name for item in settings if not item.meaning.endswith(".")] == []


def test_shares_of_one_whole_are_at_most_all_of_it():
    assert load_config(settings=["fit.forget_share=0.3", "fit.thin_share=0.7"]).fit.thin_share
    with pytest.raises(ConfigError, match="parts of one whole"):
        load_config(settings=["fit.forget_share=0.4", "fit.thin_share=0.7"])
