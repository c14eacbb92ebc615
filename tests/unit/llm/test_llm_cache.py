import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from dreamgym.errors import LLMRefused, LLMTimeout, RecordError
from dreamgym.llm import CachedLLM, ChaosServer, Fault, HttpLLM, Limits, ScriptedLLM
from dreamgym.llm.cache import request_key
from dreamgym.types import Completion, Message, Request, SampledTokens, Usage

GREEDY = Request("a")
SAMPLED = Request("a", temperature=1.0)


class SlowLLM:
    """Counts its calls; answers when it is let."""

    def __init__(self):
        self.calls = 0
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = 0

    async def complete(self, request):
        self.calls += 1
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Completion(f"answer {self.calls}", model="slow")

    async def close(self):
        pass


def counting():
    """Answers that are never the same twice."""
    numbers = iter(range(10_000))
    return ScriptedLLM(lambda request: f"{next(numbers)}")


def say(inner, path, *requests, state=None, **settings):
    """Make requests one after another; returns the texts."""

    async def main():
        llm = CachedLLM(inner, path, identity="test", **settings)
        if state is not None:
            llm.load_state_dict(state)
        try:
            return [(await llm.complete(request)).text for request in requests]
        finally:
            await llm.close()

    return asyncio.run(main())


def test_an_answer_is_asked_for_once(tmp_path):
    inner = counting()
    assert say(inner, tmp_path / "c", GREEDY, GREEDY, Request("b")) == ["0", "0", "1"]
    assert say(inner, tmp_path / "c", Request("b"), GREEDY) == ["1", "0"]
    assert len(inner.requests) == 2


def test_whole_completions_come_back_exactly(tmp_path):
    told = Completion(
        text='odd "text" \u2028 \x00 \U0001f600\n',
        model="m",
        truncated=True,
        usage=Usage(3, 4),
        tokens=SampledTokens((1, 2), (-0.1, -1 / 3)),
    )

    async def main():
        llm = CachedLLM(ScriptedLLM([told]), tmp_path / "c", identity="test")
        try:
            return [await llm.complete(GREEDY) for _ in range(2)]
        finally:
            await llm.close()

    assert asyncio.run(main()) == [told, told]


@pytest.mark.parametrize(
    "other",
    [
        Request("b"),
        Request((Message("user", "a"),)),
        replace(GREEDY, max_tokens=9),
        replace(GREEDY, grammar="root ::= [a-z]"),
        replace(GREEDY, temperature=0.5),
        replace(GREEDY, stop=("\n",)),
        replace(GREEDY, seed=1),
        replace(GREEDY, json_schema="{}"),
    ],
)
def test_everything_in_a_request_counts(other):
    assert request_key(GREEDY, identity="x") != request_key(other, identity="x")


def test_the_identity_counts_and_chats_are_not_confused():
    assert request_key(GREEDY, identity="x") != request_key(GREEDY, identity="y")
    one = Request((Message("user", "a\n\nassistant: b"),))
    two = Request((Message("user", "a"), Message("assistant", "b")))
    assert request_key(one, identity="x") != request_key(two, identity="x")
    assert request_key(Request("lone \ud83d"), identity="x")


def test_keys_stay_the_same_from_version_to_version():
    """A change here makes every cache out there useless: raise the format and say so."""
    request = Request((Message("user", "héllo"),), seed=3, temperature=0.5, stop=("x",))
    key = request_key(request, identity="m")
    assert key == "553428806e039a9ea42438fe71503332ca39308a6d2e6d110c698e128e89a15f"


def test_offline_a_run_repeats_bit_for_bit(tmp_path):
    requests = [Request(f"q{n % 7}", temperature=n % 2, seed=n % 3 or None) for n in range(40)]
    first = say(counting(), tmp_path / "c", *requests)
    nobody = ScriptedLLM([])
    assert say(nobody, tmp_path / "c", *requests, offline=True) == first
    assert nobody.requests == []


def test_offline_a_miss_is_an_error_that_says_what_was_asked(tmp_path):
    with pytest.raises(LLMRefused, match=r"offline, and .* ends in 'take the lamp'"):
        say(counting(), tmp_path / "c", Request("take the lamp"), offline=True)


def test_sampled_requests_without_a_seed_do_not_collapse(tmp_path):
    assert say(counting(), tmp_path / "c", SAMPLED, SAMPLED, SAMPLED) == ["0", "1", "2"]
    assert say(ScriptedLLM([]), tmp_path / "c", SAMPLED, SAMPLED) == ["0", "1"]


def test_sampled_requests_with_a_seed_or_by_wish_do(tmp_path):
    seeded = replace(SAMPLED, seed=1)
    other = replace(SAMPLED, seed=2)
    assert say(counting(), tmp_path / "c", seeded, seeded, other) == ["0", "0", "1"]
    assert say(counting(), tmp_path / "d", SAMPLED, SAMPLED, share_samples=True) == ["0", "0"]


def test_a_failed_sample_leaves_no_hole_in_the_numbers(tmp_path):
    inner = ScriptedLLM(["0", LLMTimeout("late"), "1", "2"])

    async def main():
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        texts = []
        for _ in range(4):
            try:
                texts.append((await llm.complete(SAMPLED)).text)
            except LLMTimeout:
                continue
        await llm.close()
        return texts

    assert asyncio.run(main()) == ["0", "1", "2"]
    assert say(ScriptedLLM([]), tmp_path / "c", *[SAMPLED] * 3, offline=True) == ["0", "1", "2"]


def test_a_resumed_run_goes_on_numbering(tmp_path):
    async def main():
        llm = CachedLLM(counting(), tmp_path / "c", identity="test")
        await llm.complete(SAMPLED)
        state = json.loads(json.dumps(llm.state_dict()))
        await llm.complete(SAMPLED)  # After the checkpoint: lost by the kill, but in the cache.
        await llm.close()
        return state

    state = asyncio.run(main())
    inner = ScriptedLLM(["new"])
    assert say(inner, tmp_path / "c", SAMPLED, SAMPLED, state=state) == ["1", "new"]


def test_failures_are_never_remembered(tmp_path):
    inner = ScriptedLLM([LLMTimeout("late"), "good"])
    with pytest.raises(LLMTimeout):
        say(inner, tmp_path / "c", GREEDY)
    assert say(inner, tmp_path / "c", GREEDY) == ["good"]


def test_identical_requests_under_way_are_made_once(tmp_path):
    async def main():
        inner = SlowLLM()
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        calls = [asyncio.create_task(llm.complete(GREEDY)) for _ in range(20)]
        other = asyncio.create_task(llm.complete(Request("b")))
        while inner.calls < 2:
            await asyncio.sleep(0.01)
        inner.go.set()
        answers = await asyncio.gather(*calls)
        await other
        metrics = llm.metrics()
        await llm.close()
        return inner.calls, answers, metrics

    calls, answers, metrics = asyncio.run(main())
    assert calls == 2
    assert len(set(answers)) == 1
    assert metrics == {"llm/cache_hits": 0, "llm/cache_misses": 2, "llm/cache_joined": 19}


def test_a_failure_reaches_everyone_who_waits_and_then_is_forgotten(tmp_path):
    async def main():
        inner = ScriptedLLM([LLMTimeout("late"), "good"])
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        ends = await asyncio.gather(
            *(llm.complete(GREEDY) for _ in range(3)), return_exceptions=True
        )
        after = await llm.complete(GREEDY)
        await llm.close()
        return ends, after

    ends, after = asyncio.run(main())
    assert [type(end) for end in ends] == [LLMTimeout] * 3
    assert after.text == "good"


def test_one_caller_that_is_cancelled_does_not_take_the_others_along(tmp_path):
    async def main():
        inner = SlowLLM()
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        first, second = (asyncio.create_task(llm.complete(GREEDY)) for _ in range(2))
        await inner.started.wait()
        first.cancel()
        await asyncio.sleep(0.05)
        inner.go.set()
        answer = await second
        await llm.close()
        return inner, answer, first.cancelled()

    inner, answer, cancelled = asyncio.run(main())
    assert cancelled
    assert answer.text == "answer 1"
    assert inner.cancelled == 0


def test_when_all_are_cancelled_so_is_the_call_and_the_next_one_starts_afresh(tmp_path):
    async def main():
        inner = SlowLLM()
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        callers = [asyncio.create_task(llm.complete(GREEDY)) for _ in range(2)]
        await inner.started.wait()
        for caller in callers:
            caller.cancel()
        again = asyncio.create_task(llm.complete(GREEDY))
        await asyncio.gather(*callers, return_exceptions=True)
        await asyncio.sleep(0.05)
        inner.go.set()
        answer = await again
        await llm.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return answer.text

    assert asyncio.run(main()).startswith("answer")


def test_closing_stops_what_is_under_way(tmp_path):
    async def main():
        inner = SlowLLM()
        llm = CachedLLM(inner, tmp_path / "c", identity="test")
        caller = asyncio.create_task(llm.complete(GREEDY))
        await inner.started.wait()
        await llm.close()
        await asyncio.gather(caller, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return inner.cancelled

    assert asyncio.run(main()) == 1


def test_over_a_failing_server_the_repeat_is_exact_and_silent(tmp_path):
    requests = [Request(f"q{n}", temperature=1.0, seed=n) for n in range(30)]

    def run(url, **settings):
        async def main():
            limits = Limits(retries=8, backoff_seconds=0.01, backoff_cap=0.02)
            http = HttpLLM(url, "m", limits=limits)
            llm = CachedLLM(http, tmp_path / "c", identity="m", **settings)
            try:
                return await asyncio.gather(*(llm.complete(request) for request in requests))
            finally:
                await llm.close()

        return asyncio.run(main())

    kinds = [Fault.SERVER_ERROR, Fault.TRUNCATED, Fault.GARBLED_JSON]
    with ChaosServer(rate=0.4, kinds=kinds) as server:
        first = run(server.base_url)
    assert server.counts["requests"] > 30
    assert run("http://127.0.0.1:9/v1", offline=True) == first


WRITER = """
import asyncio, sys
from pathlib import Path
from dreamgym.llm import CachedLLM, ScriptedLLM
from dreamgym.types import Request

async def main(path, name):
    llm = CachedLLM(ScriptedLLM(lambda request: name), Path(path), identity="test")
    for n in range(60):
        print((await llm.complete(Request(f"q{n}"))).text)
    await llm.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_several_processes_agree(tmp_path):
    """Whoever is first, all get the same answer to the same question."""
    arguments = [sys.executable, "-c", WRITER, str(tmp_path / "c")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    processes = [
        subprocess.Popen([*arguments, name], stdout=subprocess.PIPE, env=environment, text=True)
        for name in ("one", "two", "three")
    ]
    outputs = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(outputs[0]) == 60
    assert outputs[0] == outputs[1] == outputs[2]


def test_a_file_that_is_no_cache_is_refused(tmp_path):
    path = tmp_path / "c"
    path.write_text("this is not a database, but long enough to be taken for one" * 20)
    with pytest.raises(RecordError, match="not a cache"):
        say(counting(), path, GREEDY)


def test_caches_from_before_there_were_grammars_stay_good():
    key = "350c3ea9ce47c9c90ae2cb96e36439f90c8649580eff8c9ec2f9b63b9bbb5b88"
    assert request_key(Request("hello"), identity="x") == key
