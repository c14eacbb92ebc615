"""The settings of a language model: checked early, and never a place for a key."""

import pytest

from dreamgym.config import MAY_CHANGE, AnnotateConfig, LlmConfig, RunConfig, dump_toml, load_config
from dreamgym.config.describe import describe
from dreamgym.errors import ConfigError
from dreamgym.llm.wire import DIALECTS

KEY = "sk-do-not-show-me-4d1f9c"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("llm.url=localhost:8000", "llm.url 'localhost:8000' is not like http://"),
        ("llm.url=ftp://host/v1", "is not like"),
        ("llm.url=http://[bad", "is not like"),
        ("llm.api=chats", "llm.api 'chats'. Did you mean 'chat'"),
        ("llm.dialect=vlm", "llm.dialect 'vlm'. Did you mean 'vllm'"),
        ("llm.concurrency=0", "llm.concurrency is 0; it must be at least 1"),
        ("llm.attempt_seconds=0", "llm.attempt_seconds is 0.0; it must be above 0"),
        ("llm.cost_ceiling=-1", "llm.cost_ceiling is -1.0; it must be at least 0"),
        ("llm.patience=nan", "llm.patience is nan"),
        ("llm.api_key=x", "unknown setting 'llm.api_key'"),
        ("annotate.by=teachr", "Did you mean 'teacher'"),
        ("annotate.split=trian", "Did you mean 'train'"),
        ("annotate.limit=-1", "at least 0"),
    ],
)
def test_wrong_settings_say_what_to_do(setting, message):
    with pytest.raises(ConfigError) as error:
        load_config(settings=[setting])
    assert message in str(error.value)


@pytest.mark.parametrize(
    "setting",
    [
        f"llm.key_env={KEY}",
        "llm.key_env=hf_doNotShowMe4d1f9c",
        f"llm.url=http://user:{KEY}@host/v1",
        f"llm.url=http://host/v1?key={KEY}",
        f"llm.url=http://host/v1#{KEY}",
        f"llm.key={KEY}",
    ],
)
def test_a_key_among_the_settings_is_refused_without_being_shown(setting):
    with pytest.raises(ConfigError) as error:
        load_config(settings=[setting])
    assert "ShowMe" not in str(error.value)
    assert KEY not in str(error.value)


def test_the_dialects_are_those_of_the_back_end():
    for name in DIALECTS:
        assert LlmConfig(dialect=name).dialect == name
    with pytest.raises(ConfigError, match="llamacpp, openai, plain, vllm"):
        LlmConfig(dialect="other")
    assert sorted(DIALECTS) == ["llamacpp", "openai", "plain", "vllm"]


def test_settings_read_back(tmp_path):
    config = RunConfig(
        llm=LlmConfig(url="https://host/v1", model="m", key_env="MY_KEY", patience=5.0),
        annotate=AnnotateConfig(by="teacher", again=True),
    )
    path = tmp_path / "config.toml"
    path.write_text(dump_toml(config))
    assert load_config(files=[path]) == config


def test_what_may_change_is_there_and_what_decides_answers_is_not_among_it():
    names = {setting.name for setting in describe(RunConfig())}
    assert names >= MAY_CHANGE
    assert not {"llm.model", "llm.dialect", "llm.api", "annotate.by"} & MAY_CHANGE
