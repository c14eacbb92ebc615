import asyncio

import pytest

from dreamgym.errors import LLMBudget, LLMDown, LLMError, LLMRefused, LLMTimeout
from dreamgym.llm import BreakerLLM, ChaosServer, HttpLLM, Limits
from dreamgym.types import Completion, Request


class MoodyLLM:
    """Is up or down as a test wishes; `bad` prompts fail whatever the mood."""

    def __init__(self, clock=None, *, down_until=None):
        self.up = True
        self.clock = clock
        self.down_until = down_until
        self.prompts = []

    async def complete(self, request):
        self.prompts.append(request.prompt)
        await asyncio.sleep(0)
        down = not self.up or (self.down_until and self.clock.now() < self.down_until)
        if down or request.prompt == "bad":
            raise LLMTimeout(f"no answer to {request.prompt}")
        return Completion(f"re {request.prompt}", model="m")

    async def close(self):
        pass


def together(llm, prompts):
    async def main():
        calls = (llm.complete(Request(prompt)) for prompt in prompts)
        return await asyncio.gather(*calls, return_exceptions=True)

    return main()


@pytest.fixture
def events():
    return []


def breaker(inner, clock, events, **settings):
    settings = {"failures": 3, "first_wait": 1.0, "longest_wait": 8.0, **settings}
    return BreakerLLM(
        inner, clock=clock, on_event=lambda name, **details: events.append(name), **settings
    )


def test_while_all_is_well_it_is_not_noticed(clock, events):
    inner = MoodyLLM()
    ends = clock.run(together(breaker(inner, clock, events), "abc"))
    assert [end.text for end in ends] == ["re a", "re b", "re c"]
    assert events == []
    assert clock.now() == 1000


def test_an_outage_is_a_pause_and_then_everyone_gets_an_answer(clock, events):
    inner = MoodyLLM(clock, down_until=1010.0)
    llm = breaker(inner, clock, events)
    ends = clock.run(together(llm, [str(n) for n in range(20)]))
    lost = [end for end in ends if isinstance(end, LLMError)]
    assert len(lost) == 2  # Those that failed before it was clear that this is an outage.
    assert sum(isinstance(end, Completion) for end in ends) == 18
    assert all(end.text == f"re {n}" for n, end in enumerate(ends) if isinstance(end, Completion))
    # Probes after 1, 2, 4 and 8 seconds; the last one finds it up.
    assert events == ["llm_paused", *["llm_probe_failed"] * 3, "llm_resumed"]
    assert clock.now() - 1000 == pytest.approx(15, abs=0.1)
    assert llm.metrics() == {"llm/pauses": 1.0, "llm/paused_seconds": pytest.approx(15, abs=0.1)}


def test_only_one_caller_at_a_time_knocks(clock, events):
    inner = MoodyLLM(clock, down_until=1010.0)
    llm = breaker(inner, clock, events, failures=1)
    clock.run(together(llm, [str(n) for n in range(20)]))
    # All fail once, then one probe at a time until it is up, then the other nineteen.
    assert len(inner.prompts) == 20 + 4 + 19


def test_failures_with_successes_between_them_are_no_outage(clock, events):
    inner = MoodyLLM()
    llm = breaker(inner, clock, events)

    async def main():
        for prompt in ["bad", "bad", "good"] * 5:
            await asyncio.gather(llm.complete(Request(prompt)), return_exceptions=True)

    clock.run(main())
    assert events == []


@pytest.mark.parametrize("error", [LLMRefused("no"), LLMBudget("no money")])
def test_a_server_that_says_no_is_up(clock, events, error):
    class Refusing:
        async def complete(self, request):
            raise error

    ends = clock.run(together(breaker(Refusing(), clock, events), "abcdef"))
    assert [type(end) for end in ends] == [type(error)] * 6
    assert events == []


def test_one_request_that_breaks_the_server_does_not_stop_the_others(clock, events):
    inner = MoodyLLM()
    llm = breaker(inner, clock, events, give_up_after=100)

    async def main():
        for _ in range(2):
            await asyncio.gather(llm.complete(Request("bad")), return_exceptions=True)
        third = asyncio.create_task(llm.complete(Request("bad")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        good = await asyncio.gather(*(llm.complete(Request(f"{n}")) for n in range(3)))
        end = await asyncio.gather(third, return_exceptions=True)
        return good, end

    good, end = clock.run(main())
    assert [answer.text for answer in good] == ["re 0", "re 1", "re 2"]
    assert isinstance(end[0], LLMTimeout)
    assert "llm_resumed" in events
    assert "llm_gave_up" not in events


def test_it_gives_up_after_a_time_and_tells_everyone(clock, events):
    inner = MoodyLLM()
    inner.up = False
    llm = breaker(inner, clock, events, give_up_after=30)
    ends = clock.run(together(llm, [str(n) for n in range(10)]))
    assert [type(end) for end in ends].count(LLMDown) == 8
    assert "down for 30 s, 5 probes failed; the last one said: no answer to" in str(ends[-1])
    assert clock.now() - 1000 == pytest.approx(30)
    assert events[-1] == "llm_gave_up"
    asked = len(inner.prompts)
    inner.up = True
    ends = clock.run(together(llm, ["x"]))
    assert isinstance(ends[0], LLMDown)
    assert len(inner.prompts) == asked


def test_a_cancelled_prober_is_replaced(clock, events):
    inner = MoodyLLM()
    llm = breaker(inner, clock, events, failures=1)

    async def main():
        inner.up = False
        callers = [asyncio.create_task(llm.complete(Request(f"{n}"))) for n in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        callers[0].cancel()
        inner.up = True
        ends = await asyncio.gather(*callers, return_exceptions=True)
        return ends

    ends = clock.run(main())
    assert isinstance(ends[0], asyncio.CancelledError)
    assert [end.text for end in ends[1:]] == ["re 1", "re 2"]


def test_a_late_success_of_a_call_from_before_ends_the_pause(clock, events):
    class Late(MoodyLLM):
        async def complete(self, request):
            if request.prompt == "long":
                await self.clock.sleep(2.5)
                return Completion("late", model="m")
            return await super().complete(request)

    inner = Late(clock, down_until=1002.0)
    llm = breaker(inner, clock, events, failures=2, first_wait=4.0)
    ends = clock.run(together(llm, ["long", "a", "b", "c"]))
    assert ends[0].text == "late"
    assert events == ["llm_paused", "llm_resumed"]


def test_it_needs_at_least_one_failure():
    with pytest.raises(ValueError, match="failures"):
        BreakerLLM(MoodyLLM(), failures=0)


def test_a_real_server_goes_and_comes_back(events):
    """Ten episodes of five calls; the server is away for a while in the middle."""
    server = ChaosServer(lambda prompt: prompt[::-1]).start()

    async def episode(llm, name):
        answers = []
        for n in range(5):
            answers.append((await llm.complete(Request(f"{name}{n}"))).text)
            await asyncio.sleep(0.03)
        return answers

    async def main():
        limits = Limits(retries=0, concurrency=16, attempt_seconds=5)
        http = HttpLLM(server.base_url, "m", limits=limits)
        llm = BreakerLLM(
            http,
            failures=1,
            first_wait=0.05,
            longest_wait=0.2,
            on_event=lambda name, **details: events.append(name),
        )
        try:
            episodes = asyncio.gather(*(episode(llm, name) for name in "abcdefghij"))
            await asyncio.sleep(0.06)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.start)
            return await episodes
        finally:
            await llm.close()

    try:
        answers = asyncio.run(asyncio.wait_for(main(), 30))
    finally:
        server.stop()
    assert answers == [[f"{n}{name}" for n in range(5)] for name in "abcdefghij"]
    assert events[0] == "llm_paused"
    assert "llm_probe_failed" in events
    assert events[-1] == "llm_resumed"
