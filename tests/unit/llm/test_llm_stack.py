"""The whole stack as one back end: it repeats offline, pauses, and tells its listeners."""

import asyncio

import pytest

from dreamgym.errors import LLMDown, LLMRefused
from dreamgym.llm import ChaosServer, HttpLLM, Limits, Price
from dreamgym.llm.stack import StackedLLM
from dreamgym.types import Request

LIMITS = Limits(retries=0, backoff_seconds=0.01, attempt_seconds=2)


def answers(prompts, url, **settings):
    async def main():
        server = HttpLLM(url, "m", limits=LIMITS, price=Price(1.0, 1.0))
        llm = StackedLLM(server, **settings)
        try:
            texts = [(await llm.complete(Request(prompt))).text for prompt in prompts]
            return texts, llm.metrics()
        finally:
            await llm.close()

    return asyncio.run(main())


def test_all_figures_are_in_one_place_and_answers_repeat_offline(tmp_path):
    cache = tmp_path / "cache.sqlite"
    with ChaosServer() as server:
        texts, figures = answers("aab", server.base_url, cache=cache)
        assert server.counts["requests"] == 2
    assert texts == ["echo: a", "echo: a", "echo: b"]
    assert figures["llm/cache_hits"] == 1
    assert figures["llm/calls"] == 2
    assert figures["llm/pauses"] == 0
    assert figures["llm/cost"] > 0
    offline, later = answers("ab", server.base_url, cache=cache, offline=True)
    assert offline == ["echo: a", "echo: b"]
    assert later["llm/calls"] == 0
    with pytest.raises(LLMRefused, match="offline"):
        answers("c", server.base_url, cache=cache, offline=True)


def test_without_a_cache_everything_is_asked():
    with ChaosServer() as server:
        _, figures = answers("aa", server.base_url)
    assert server.counts["requests"] == 2
    assert "llm/cache_hits" not in figures


def test_an_outage_is_told_to_every_listener_with_the_time_of_the_next_try():
    heard, noted = [], []
    with pytest.raises(LLMDown, match="127.0.0.1:9/v1"):
        answers(
            "a", "http://127.0.0.1:9/v1", failures=1, longest_wait=0.05, patience=0.1,
            listeners=[lambda name, **d: heard.append((name, d)), lambda n, **d: noted.append(n)],
        )  # fmt: skip
    assert noted == [name for name, _ in heard]
    assert noted[0] == "llm_paused"
    assert noted[-1] == "llm_gave_up"
    assert heard[0][1]["next_in"] == 0.05
    assert "127.0.0.1:9" in heard[0][1]["error"]


def test_without_listeners_an_outage_is_logged(caplog):
    with pytest.raises(LLMDown):
        answers("a", "http://127.0.0.1:9/v1", failures=1, longest_wait=0.05, patience=0.1)
    assert "does not answer: m at http://127.0.0.1:9/v1" in caplog.text
    assert "Ctrl-C is safe" in caplog.text
