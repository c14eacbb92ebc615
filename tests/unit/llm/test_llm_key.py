"""The key goes into one header and nowhere else: this looks for it everywhere."""

import asyncio
import logging
import pickle
import traceback

import pytest

from dreamgym.errors import ConfigError, DreamGymError, LLMRefused
from dreamgym.llm import BreakerLLM, CachedLLM, ChaosServer, Fault, HttpLLM, Limits, Spend
from dreamgym.llm.chaos import TRANSPORT_FAULTS
from dreamgym.types import Request

KEY = "sk-do-not-show-me-4d1f9c"
LIMITS = Limits(retries=1, backoff_seconds=0.01, attempt_seconds=0.15)


def everything_about(error):
    """All that an exception holds, through its causes, as a debugger or a crash report sees it."""
    seen, texts = [], []
    while error is not None and error not in seen:
        seen.append(error)
        texts += [repr(error), str(error), *traceback.format_exception(error)]
        request = getattr(error, "request", None)
        texts += [repr(vars(error)), str(request and request.headers.raw)]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


def test_the_key_is_sent(monkeypatch):
    async def main():
        llm = HttpLLM(server.base_url, "m", key_env="MY_KEY")
        try:
            return await llm.complete(Request("hello"))
        finally:
            await llm.close()

    monkeypatch.setenv("MY_KEY", f"  {KEY}\n")
    with ChaosServer(key=KEY) as server:
        assert asyncio.run(main()).text == "echo: hello"


@pytest.mark.parametrize("fault", [None, *TRANSPORT_FAULTS, Fault.BAD_REQUEST])
def test_the_key_is_in_no_error_log_event_or_file(fault, monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "dreamgym"):
        caplog.set_level(logging.DEBUG, logger=name)
    texts = []

    async def main():
        llm = HttpLLM(
            server.base_url,
            "m",
            key_env="MY_KEY",
            limits=LIMITS,
            spend=Spend(ledger=tmp_path / "spend.jsonl"),
        )
        guarded = BreakerLLM(
            llm, failures=1, give_up_after=0.0, on_event=lambda *a, **k: texts.append(f"{a} {k}")
        )
        cached = CachedLLM(guarded, tmp_path / "cache.sqlite", identity=llm.identity)
        texts.extend([repr(llm), str(llm), repr(vars(llm)), llm.identity])
        try:
            texts.append(repr(await cached.complete(Request("hello"))))
        except DreamGymError as error:
            texts.append(everything_about(error))
            texts.append(repr(pickle.loads(pickle.dumps(error))))
        finally:
            await cached.close()
        texts.append(repr([llm.metrics(), llm.spend.state_dict(), cached.state_dict()]))

    rate, kinds = (1.0, [fault]) if fault else (0.0, [])
    # The worst case: the answer itself quotes the key.
    with ChaosServer(lambda prompt: f"your key is {KEY}", rate=rate, kinds=kinds) as server:
        asyncio.run(main())
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert all(KEY.encode() not in content for content in files)
    assert len(caplog.records) > 3
    logged = "\n".join(repr(vars(record)) + record.getMessage() for record in caplog.records)
    assert KEY not in logged
    assert len(texts) >= 6
    assert KEY not in "\n".join(texts)


def test_a_server_that_quotes_a_wrong_key_does_not_spread_it(monkeypatch):
    async def main():
        llm = HttpLLM(server.base_url, "m", key_env="MY_KEY")
        try:
            await llm.complete(Request("hello"))
        finally:
            await llm.close()

    monkeypatch.setenv("MY_KEY", KEY)
    with (
        ChaosServer(key="another") as server,
        pytest.raises(LLMRefused, match=r"status 401: .*Bearer \[key\]") as caught,
    ):
        asyncio.run(main())
    assert KEY not in everything_about(caught.value)
    assert server.counts["unauthorized"] == 1


def test_a_placeholder_key_is_left_alone_in_answers(monkeypatch):
    async def main():
        llm = HttpLLM(server.base_url, "m", key_env="MY_KEY")
        try:
            return await llm.complete(Request("the chest is EMPTY"))
        finally:
            await llm.close()

    monkeypatch.setenv("MY_KEY", "EMPTY")
    with ChaosServer() as server:
        assert asyncio.run(main()).text == "echo: the chest is EMPTY"


def test_a_missing_key_is_a_setting_to_fix(monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    llm = HttpLLM("http://127.0.0.1:9/v1", "m", key_env="MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY is empty"):
        asyncio.run(llm.complete(Request("x")))


@pytest.mark.parametrize("wrong", ["sk-two\nlines-of-it", "sk-\u2028odd", "sk-\x07bell"])
def test_what_is_no_key_is_refused_without_being_shown(wrong, monkeypatch):
    monkeypatch.setenv("MY_KEY", wrong)
    llm = HttpLLM("http://127.0.0.1:9/v1", "m", key_env="MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY does not hold a key") as caught:
        asyncio.run(llm.complete(Request("x")))
    assert wrong not in everything_about(caught.value)


@pytest.mark.parametrize("url", [f"http://user:{KEY}@host/v1", f"http://host/v1?key={KEY}"])
def test_a_key_in_the_address_is_refused_without_being_shown(url):
    with pytest.raises(ConfigError, match="key_env") as caught:
        HttpLLM(url, "m")
    assert KEY not in everything_about(caught.value)
