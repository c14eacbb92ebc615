"""The HTTP back end against a real server on loopback that goes wrong on purpose."""

import asyncio
import random
import socket
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dreamgym.errors import (
    ConfigError,
    LLMBudget,
    LLMError,
    LLMRateLimit,
    LLMRefused,
    LLMTimeout,
)
from dreamgym.llm import ChaosServer, Dialect, Fault, HttpLLM, Limits, Price, Spend
from dreamgym.llm.chaos import TRANSPORT_FAULTS
from dreamgym.types import Message, Request, Usage

QUICK = Limits(backoff_seconds=0.01, backoff_cap=0.05)
SLOW_FAULTS = (Fault.HANG, Fault.DRIP)
"""Only these run into the time limit of an attempt; a short one for all would be a race."""


@asynccontextmanager
async def opened(server, **settings):
    llm = HttpLLM(server.base_url, "m", **{"limits": QUICK, **settings})
    try:
        yield llm
    finally:
        await llm.close()


def ask_once(server, request=None, **settings):
    async def main():
        async with opened(server, **settings) as llm:
            return await llm.complete(request or Request("one\ntwo"))

    return asyncio.run(main())


def test_a_text_is_gone_on_from():
    with ChaosServer() as server:
        completion = ask_once(server)
    assert completion.text == "echo: two"
    assert completion.usage == Usage(2, 2)
    assert server.counts == {"requests": 1, "right": 1}


def test_a_chat_is_answered():
    chat = (Message("system", "be brief"), Message("user", "hello there"))
    with ChaosServer() as server:
        completion = ask_once(server, Request(chat, max_tokens=2, seed=5, stop=("END",)))
    assert completion.text == "echo: user:"
    assert completion.truncated
    assert server.payloads[0]["stop"] == ["END"]
    assert server.payloads[0]["seed"] == 5


@pytest.mark.parametrize("fault", TRANSPORT_FAULTS)
def test_each_fault_alone_is_survived_by_trying_again(fault):
    limits = replace(QUICK, attempt_seconds=0.6 if fault in SLOW_FAULTS else 60.0)
    with ChaosServer(script=[fault]) as server:
        completion = ask_once(server, limits=limits)
    assert completion.text == "echo: two"
    assert server.counts[fault] == 1
    if fault not in SLOW_FAULTS:
        assert server.counts == {"requests": 2, fault: 1, "right": 1}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.RATE_LIMIT, LLMRateLimit),
        (Fault.RATE_LIMIT_SECONDS, LLMRateLimit),
        (Fault.HANG, LLMTimeout),
        (Fault.DRIP, LLMTimeout),
        (Fault.SERVER_ERROR, LLMError),
        (Fault.RESET, LLMError),
        (Fault.TRUNCATED, LLMError),
        (Fault.GARBLED_JSON, LLMError),
        (Fault.EMPTY_CHOICES, LLMError),
    ],
)
def test_a_fault_that_stays_ends_in_its_own_error_after_the_budget(fault, error):
    seconds = 0.15 if fault in SLOW_FAULTS else 60.0
    limits = Limits(retries=2, backoff_seconds=0.01, attempt_seconds=seconds)
    with (
        ChaosServer(rate=1.0, kinds=[fault]) as server,
        pytest.raises(error, match="3 attempts") as caught,
    ):
        ask_once(server, limits=limits)
    assert type(caught.value) is error
    assert server.counts["requests"] == 3 or (fault in SLOW_FAULTS and server.counts[fault] < 3)


def test_a_request_at_fault_is_refused_at_once_in_the_servers_words():
    with (
        ChaosServer(script=[Fault.BAD_REQUEST]) as server,
        pytest.raises(LLMRefused, match="status 400: chaos: bad_request"),
    ):
        ask_once(server)
    assert server.counts["requests"] == 1


def test_a_wrong_address_is_refused_at_once():
    with ChaosServer() as server:
        server_elsewhere = SimpleNamespace(base_url=server.base_url + "/oops")
        with pytest.raises(LLMRefused, match="status 404"):
            ask_once(server_elsewhere)
    assert server.counts["requests"] == 1


def test_a_server_that_is_not_there_is_tried_again():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = SimpleNamespace(base_url=f"http://127.0.0.1:{probe.getsockname()[1]}/v1")
    with pytest.raises(LLMError, match="cannot connect"):
        ask_once(nobody, limits=Limits(retries=1, backoff_seconds=0.01))


def test_a_server_that_comes_back_is_found_again():
    server = ChaosServer()
    server.start()
    server.stop()

    async def main():
        limits = Limits(retries=30, backoff_seconds=0.05, backoff_cap=0.05)
        async with opened(server, limits=limits) as llm:
            call = asyncio.create_task(llm.complete(Request("x")))
            await asyncio.sleep(0.15)
            server.start()
            return await call

    try:
        assert asyncio.run(main()).text == "echo: x"
    finally:
        server.stop()


@pytest.mark.parametrize("fault", [Fault.EMPTY_TEXT, Fault.NONSENSE])
def test_the_content_of_an_answer_is_none_of_its_business(fault):
    with ChaosServer(script=[fault]) as server:
        assert ask_once(server).text in ("", "zxq blort 17 (((")
    assert server.counts["requests"] == 1


def test_the_total_time_is_a_limit_of_its_own():
    limits = Limits(retries=100, attempt_seconds=0.2, total_seconds=0.5, backoff_seconds=0.01)
    with ChaosServer(rate=1.0, kinds=[Fault.HANG]) as server:
        start = time.monotonic()
        with pytest.raises(LLMTimeout):
            ask_once(server, limits=limits)
        took = time.monotonic() - start
    assert 0.3 < took < 10
    assert server.counts["requests"] <= 4


def test_the_wait_a_server_asks_for_is_honoured(clock):
    async def main():
        async with opened(server, clock=clock, limits=Limits(backoff_seconds=0)) as llm:
            return await llm.complete(Request("x"))

    with ChaosServer(script=[Fault.RATE_LIMIT_DATE]) as server:
        before = clock.now()
        assert clock.run(main()).text == "echo: x"
    assert clock.now() - before == pytest.approx(1.0, abs=0.01)


def test_a_wait_beyond_the_total_time_fails_at_once_and_says_so(clock):
    async def main():
        limits = Limits(total_seconds=0.5, backoff_seconds=0)
        async with opened(server, clock=clock, limits=limits) as llm:
            await llm.complete(Request("x"))

    with (
        ChaosServer(script=[Fault.RATE_LIMIT_DATE]) as server,
        pytest.raises(LLMRateLimit, match="asks to wait 1 s"),
    ):
        clock.run(main())
    assert server.counts["requests"] == 1


def test_backoff_grows_and_is_repeatable(make_clock):
    waits = []
    for _ in range(2):
        clock = make_clock()

        async def main(clock=clock):
            async with opened(server, clock=clock, limits=Limits(retries=4), seed=3) as llm:
                await llm.complete(Request("x"))

        with ChaosServer(script=[Fault.SERVER_ERROR] * 4) as server:
            clock.run(main())
        waits.append(clock.now() - 1000)
    assert waits[0] == waits[1]
    assert (0.5 + 1 + 2 + 4) / 2 <= waits[0] <= 0.5 + 1 + 2 + 4


def test_no_more_requests_at_once_than_allowed():
    async def main():
        async with opened(server, limits=Limits(concurrency=3)) as llm:
            await asyncio.gather(*(llm.complete(Request(f"{n}")) for n in range(12)))

    with ChaosServer(latency=0.03) as server:
        asyncio.run(main())
    assert server.at_once == 3
    assert server.counts["right"] == 12


def test_requests_per_minute_hold_in_front_of_a_real_server(clock):
    async def main():
        async with opened(server, clock=clock, limits=Limits(requests_per_minute=60)) as llm:
            await asyncio.gather(*(llm.complete(Request(f"{n}")) for n in range(10)))

    with ChaosServer() as server:
        clock.run(main())
    assert clock.now() - 1000 == pytest.approx(9.0)


def test_tokens_per_minute_follow_what_was_really_used(clock):
    async def main():
        limits = Limits(tokens_per_minute=60, concurrency=1)
        async with opened(server, clock=clock, limits=limits) as llm:
            for n in range(5):
                await llm.complete(Request(f"{n}", max_tokens=500))

    with ChaosServer() as server:
        clock.run(main())
    assert clock.now() - 1000 == pytest.approx(4 * 3)  # Three words each: "0" and "echo: 0".


def test_requests_that_were_not_taken_use_up_no_tokens_per_minute(clock):
    async def main():
        limits = Limits(tokens_per_minute=60, backoff_seconds=0)
        async with opened(server, clock=clock, limits=limits) as llm:
            await llm.complete(Request("x", max_tokens=500))

    with ChaosServer(script=[Fault.SERVER_ERROR] * 3) as server:
        clock.run(main())
    assert clock.now() - 1000 < 1


def test_the_ceiling_holds_under_concurrency_and_faults():
    """What the server billed never passes the ceiling, whatever arrived of it."""

    async def main():
        async with opened(server, spend=spend, price=Price(1.0, 1.0)) as llm:
            calls = (llm.complete(Request(f"word {n}", max_tokens=20)) for n in range(150))
            return await asyncio.gather(*calls, return_exceptions=True)

    spend = Spend(ceiling=0.003)
    kinds = [Fault.TRUNCATED, Fault.EMPTY_CHOICES, Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.RESET]
    with ChaosServer(lambda prompt: "a " * 15, rate=0.3, kinds=kinds) as server:
        ends = asyncio.run(main())
    assert server.billed_tokens / 1e6 <= spend.cost <= 0.003
    refused = [end for end in ends if isinstance(end, LLMBudget)]
    right = [end for end in ends if not isinstance(end, BaseException)]
    assert refused
    assert right
    assert len(refused) + len(right) == 150


def test_known_bills_are_exact_and_unknown_ones_cautious():
    script = [None, Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.EMPTY_CHOICES, None]
    spend = Spend()

    async def main():
        async with opened(server, spend=spend) as llm:
            for n in range(2):
                await llm.complete(Request(f"{n}", max_tokens=100))

    with ChaosServer(script=script) as server:
        asyncio.run(main())
    figures = spend.metrics()
    assert figures["llm/billed_calls"] == 4
    assert figures["llm/unsure_calls"] == 1
    assert figures["llm/completion_tokens"] == 2 + 100 + 2 + 2


def test_cancelled_calls_leave_nothing_behind():
    async def main():
        async with opened(server, limits=Limits(concurrency=4), spend=spend) as llm:
            calls = [asyncio.create_task(llm.complete(Request(f"{n}"))) for n in range(10)]
            while server.counts["hang"] < 4:
                await asyncio.sleep(0.01)
            for call in calls:
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            # All slots are free again, and what was under way counts as spent.
            answers = await asyncio.gather(*(llm.complete(Request("x")) for _ in range(4)))
            assert [answer.text for answer in answers] == ["echo: x"] * 4
        assert asyncio.all_tasks() == {asyncio.current_task()}

    spend = Spend()
    with ChaosServer(script=[Fault.HANG] * 4) as server:
        asyncio.run(main())
    assert spend.metrics()["llm/unsure_calls"] == 4


def test_calls_cut_short_at_any_moment_leave_no_dead_connection():
    """Cancelled while connecting, sending or reading; afterwards every slot still works."""

    async def hasty(llm, rng):
        for n in range(60):
            with suppress(TimeoutError, LLMError):
                await asyncio.wait_for(llm.complete(Request(f"{n}")), rng.random() * 0.02)

    async def main():
        limits = Limits(concurrency=8, retries=3, backoff_seconds=0.001, attempt_seconds=10)
        async with opened(server, limits=limits) as llm:
            await asyncio.gather(*(hasty(llm, random.Random(seed)) for seed in range(8)))
            calls = (llm.complete(Request(f"last {n}")) for n in range(30))
            answers = await asyncio.gather(*calls)
            assert [answer.text for answer in answers] == [f"echo: last {n}" for n in range(30)]
            assert llm.metrics()["llm/timeout"] == 0

    kinds = [Fault.TRUNCATED, Fault.RESET, Fault.HANG_UP]
    with ChaosServer(latency=0.005, rate=0.2, kinds=kinds) as server:
        asyncio.run(main())


def test_an_endless_reply_is_cut_off():
    limits = Limits(reply_bytes=10_000, retries=1, backoff_seconds=0.01)
    with (
        ChaosServer(lambda prompt: "x" * 100_000) as server,
        pytest.raises(LLMError, match="passes 10000 bytes"),
    ):
        ask_once(server, limits=limits)


def test_metrics_tell_what_happened():
    async def main():
        async with opened(server) as llm:
            await llm.complete(Request("x"))
            return llm.metrics()

    with ChaosServer(script=[Fault.RATE_LIMIT, Fault.RESET, Fault.GARBLED_JSON]) as server:
        metrics = asyncio.run(main())
    assert metrics["llm/calls"] == 1
    assert metrics["llm/attempts"] == 4
    assert metrics["llm/retries"] == 3
    assert metrics["llm/rate_limit"] == metrics["llm/network"] == metrics["llm/broken_reply"] == 1
    assert metrics["llm/failed_calls"] == 0


def test_a_proxy_in_the_environment_does_not_stand_before_loopback(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ChaosServer() as server:
        assert ask_once(server).text == "echo: two"


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/v1", "http://", "http://x:port/v1"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ConfigError, match="base_url"):
        HttpLLM(url, "m")


def test_the_identity_changes_with_what_the_answer_depends_on():
    one = HttpLLM("http://a/v1/", "m")
    assert one.identity == HttpLLM("http://a/v1", "m", limits=QUICK, seed=9).identity
    others = [
        HttpLLM("http://b/v1", "m"),
        HttpLLM("http://a/v1", "n"),
        HttpLLM("http://a/v1", "m", dialect=Dialect(extra={"top_p": 0.5})),
        HttpLLM("http://a/v1", "m", dialect=Dialect(schema="openai")),
    ]
    assert len({one.identity, *(other.identity for other in others)}) == 5
