"""From settings to a language model: what is missing is said before anything is sent."""

import asyncio

import pytest

from dreamgym.build import make_llm
from dreamgym.config import LlmConfig
from dreamgym.errors import ConfigError, LLMBudget
from dreamgym.llm import ChaosServer
from dreamgym.types import Message, Request

KEY = "sk-do-not-show-me-4d1f9c"


def ask(config, *prompts, **options):
    async def main():
        llm = make_llm(config, **options)
        try:
            return [(await llm.complete(Request(prompt, max_tokens=20))).text for prompt in prompts]
        finally:
            await llm.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "m"}, "llm.url is not set: add --set llm.url=http"),
        ({"url": "http://127.0.0.1:9/v1"}, "llm.model is not set"),
        ({"key_env": "NO_SUCH_KEY"}, r"NO_SUCH_KEY \(llm.key_env\) is empty"),
        ({"offline": True}, "llm.offline needs a cache"),
        ({"offline": True, "cache": "off"}, "llm.offline needs a cache"),
    ],
)
def test_what_is_missing_is_named(settings, message):
    if "key_env" in settings or "offline" in settings:
        settings = {"url": "http://127.0.0.1:9/v1", "model": "m", **settings}
    with pytest.raises(ConfigError, match=message):
        make_llm(LlmConfig(**settings))


def test_settings_reach_the_server(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    with ChaosServer(key=KEY) as server:
        config = LlmConfig(url=server.base_url, model="the-model", key_env="MY_KEY")
        assert ask(config, "hello", folder=tmp_path) == ["echo: hello"]
    assert server.payloads[0]["model"] == "the-model"
    assert (tmp_path / "llm_cache.sqlite").exists()
    assert (tmp_path / "spend.jsonl").exists()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())
    assert KEY not in repr(config)


def test_a_server_without_chats_gets_them_as_one_text():
    with ChaosServer(lambda prompt: prompt) as server:
        config = LlmConfig(url=server.base_url, model="m", api="completions")
        chat = (Message("system", "Be brief."), Message("user", "Name a colour."))
        assert ask(config, chat) == ["system: Be brief.\n\nuser: Name a colour.\n\nassistant:"]
    assert server.payloads[0]["stop"] == ["\n\nuser:"]


def test_the_cache_may_lie_elsewhere_or_nowhere(tmp_path):
    with ChaosServer() as server:
        for cache, requests in ((str(tmp_path / "shared"), 1), ("off", 3)):
            config = LlmConfig(url=server.base_url, model="m", cache=cache)
            ask(config, "x")
            ask(config, "x")
            assert server.counts["requests"] == requests
    assert (tmp_path / "shared/llm_cache.sqlite").exists()


def test_a_ceiling_holds_over_runs_in_the_same_folder(tmp_path):
    with ChaosServer() as server:
        config = LlmConfig(url=server.base_url, model="m", token_ceiling=180, cache="off")
        assert ask(config, "one", folder=tmp_path) == ["echo: one"]
        prompts = [f"and {number}" for number in range(100)]
        with pytest.raises(LLMBudget, match="ceiling of 180 tokens"):
            ask(config, *prompts, folder=tmp_path)
        asked = server.counts["requests"]
        assert 1 < asked < 100
        with pytest.raises(LLMBudget, match="ceiling of 180 tokens"):
            ask(config, *prompts, folder=tmp_path)
        assert server.counts["requests"] == asked
