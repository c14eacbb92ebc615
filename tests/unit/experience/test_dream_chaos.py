"""A dream on a server that fails: every delivered step is right, and nothing is ever made up.

The server is real and so are its faults; its right answers follow the rules of a small house. So
each step of each episode can be checked against the rules, whatever happened on the way.
"""

import asyncio
import random
from dataclasses import replace

import pytest
from small_house import GOAL, OPENING, TASK, perfect, rules

from dreamgym.agents.behaviour import Behaviour
from dreamgym.errors import LLMDown
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style
from dreamgym.experience.world import DreamWorld
from dreamgym.llm import ChaosServer, Fault, HttpLLM, Limits
from dreamgym.llm.stack import StackedLLM
from dreamgym.rollout.collect import Answerer, plan_slots
from dreamgym.rollout.record import record
from dreamgym.rollout.summary import summarise
from dreamgym.states import page_name
from dreamgym.types import Action, Source, StopReason

KINDS = (
    Fault.RATE_LIMIT, Fault.RATE_LIMIT_SECONDS, Fault.SERVER_ERROR, Fault.HANG, Fault.TRUNCATED,
    Fault.TRUNCATED_CHUNKS, Fault.CUT_JSON, Fault.GARBLED_JSON, Fault.EMPTY_BODY,
    Fault.EMPTY_CHOICES, Fault.EMPTY_TEXT, Fault.NONSENSE,
)  # fmt: skip
EPISODES = 40
LIMITS = Limits(
    concurrency=16, retries=5, backoff_seconds=0.005, backoff_cap=0.02, attempt_seconds=1.0
)
UNHURRIED = replace(LIMITS, retries=1, attempt_seconds=60)
"""Where no answer hangs, a busy machine must not look like a server that does."""
ANY = ("move west", "move east", "move north", "take cup", "take moon", "take coin", "dance")
GOOD = {"kitchen": "move west", "hall": "move north", "garden": "take coin"}


class Visitor:
    """Mostly knows the way; otherwise does anything."""

    def __init__(self, seed):
        self._rng = random.Random(seed)

    async def act(self, task, past, now):
        good = GOOD[page_name(now.text)]
        return Action(good if self._rng.random() < 0.5 else self._rng.choice(ANY))


def visits():
    tasks = [replace(TASK, id=f"house#{n}", goal=f"{GOAL}, visitor {n}") for n in range(EPISODES)]
    visitor = Behaviour("visitor", lambda env, seed: Visitor(seed))
    return plan_slots(
        tasks, episodes=EPISODES, behaviour=lambda slot: visitor,
        answerer=Answerer(Source.DREAM, "small house", ""), max_steps=7, seed=0,
    )  # fmt: skip


class Shelf:
    """Keeps what a recording hands it, delivered and failed apart."""

    def __init__(self):
        self.delivered, self.failed, self.events = [], [], []

    def add(self, trajectories):
        self.delivered += trajectories

    def heard(self, name, **details):
        self.events.append(name)


async def play(url, shelf, *, cache=None, limits=LIMITS, beside=None, **guard):
    """Record what is missing on the shelf; `beside` runs at the same time."""
    server = HttpLLM(url, "house", limits=limits)
    llm = StackedLLM(server, cache=cache, listeners=[shelf.heard], **guard)
    world = DreamWorld(ExperienceModel(llm))
    other = asyncio.create_task(beside()) if beside else None
    try:
        await record(
            visits(), world, shelf, finished={one.id for one in shelf.delivered},
            concurrency=16, on_failure=shelf.failed.append,
        )  # fmt: skip
        if other:
            await other
        return llm.metrics()
    finally:
        await world.close()


def check_every_step(trajectories):
    """Play every episode again by the rules, step by step."""
    for trajectory in trajectories:
        state = OPENING
        for step in trajectory.steps:
            state, reward, done, success, refused = rules(state, step.action.text)
            told = step.result
            assert told.observation.text == state
            assert (told.reward, told.terminated, told.success) == (reward, done, success)
            assert told.refused == refused


def check_failures(failed):
    for trajectory in failed:
        assert trajectory.stop is StopReason.FAILED
        assert trajectory.error.kind == "EnvError"
        assert "no step could be had" in trajectory.error.message
        assert trajectory.total_reward == 0
        assert not trajectory.success


@pytest.fixture(scope="module")
def calm():
    """The same visits on a server without faults."""
    shelf = Shelf()
    with ChaosServer(perfect(Style.FULL)) as server:
        asyncio.run(play(server.base_url, shelf, limits=UNHURRIED))
    assert len(shelf.delivered) == EPISODES
    assert 0 < sum(one.success for one in shelf.delivered) < EPISODES
    return shelf


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "most_failed"), [(0.01, 0.0), (0.1, 0.04), (0.5, 0.3)])
def test_what_is_delivered_is_right_and_what_failed_counts_nowhere(
    rate, most_failed, calm, tmp_path
):
    shelf = Shelf()
    with ChaosServer(perfect(Style.FULL), rate=rate, kinds=KINDS, seed=3) as server:
        metrics = asyncio.run(play(server.base_url, shelf, cache=tmp_path / "cache.sqlite"))
    faults = server.counts["requests"] - server.counts["right"]
    assert faults >= server.counts["requests"] * rate / 2
    assert len(shelf.delivered) + len(shelf.failed) == EPISODES
    check_every_step([*shelf.delivered, *shelf.failed])
    check_failures(shelf.failed)
    # An episode that was delivered is the very one that a calm server would have given.
    by_id = {one.id: one for one in calm.delivered}
    assert all(one == by_id[one.id] for one in shelf.delivered)
    summary = summarise([*shelf.delivered, *shelf.failed])
    assert summary == replace(
        summarise(shelf.delivered), failed=len(shelf.failed), failures=summary.failures
    )
    assert summary.failed == sum(count for _, count in summary.failures) == len(shelf.failed)
    assert len(shelf.failed) <= EPISODES * most_failed
    print(
        f"rate {rate}: {faults} faults in {server.counts['requests']} requests, "
        f"{len(shelf.failed)} of {EPISODES} episodes failed, {metrics['llm/pauses']:.0f} pauses"
    )


@pytest.mark.slow
def test_failed_episodes_are_made_up_for_by_the_next_run(calm):
    """At half of the replies failing, with hardly a retry: some episodes fail, none is lost."""
    shelf, runs = Shelf(), 0
    hasty = replace(LIMITS, retries=2)
    with ChaosServer(perfect(Style.FULL), rate=0.5, kinds=KINDS, seed=4) as server:
        while len(shelf.delivered) < EPISODES and runs < 8:
            asyncio.run(play(server.base_url, shelf, limits=hasty))
            runs += 1
    assert shelf.failed
    check_failures(shelf.failed)
    assert sorted(shelf.delivered, key=lambda one: one.id) == sorted(
        calm.delivered, key=lambda one: one.id
    )


def test_an_outage_pauses_the_run_which_goes_on_when_the_server_is_back(calm):
    shelf, slow = Shelf(), 0.01
    server = ChaosServer(perfect(Style.FULL), latency=slow).start()
    back = ChaosServer(perfect(Style.FULL), latency=slow, port=server.port)

    async def outage():
        while server.counts["right"] < 40:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(server.stop)
        while "llm_probe_failed" not in shelf.events:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(back.start)

    try:
        asyncio.run(
            play(
                server.base_url, shelf, beside=outage, failures=3, longest_wait=0.05, patience=30,
                limits=UNHURRIED,
            )
        )  # fmt: skip
    finally:
        server.stop()
        back.stop()
    assert shelf.events[0] == "llm_paused"
    assert shelf.events[-1] == "llm_resumed"
    # Only calls that failed before the outage was noticed are lost.
    assert len(shelf.failed) <= 2
    assert len(shelf.delivered) + len(shelf.failed) == EPISODES
    check_every_step([*shelf.delivered, *shelf.failed])
    check_failures(shelf.failed)


def test_a_server_that_stays_away_ends_the_run_which_can_be_resumed(calm):
    shelf = Shelf()
    server = ChaosServer(perfect(Style.FULL), latency=0.01).start()

    async def outage():
        while server.counts["right"] < 150:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(server.stop)

    with pytest.raises(LLMDown, match="resume the run"):
        asyncio.run(
            play(
                server.base_url, shelf, beside=outage, failures=3, longest_wait=0.05, patience=0.3,
                limits=UNHURRIED,
            )
        )  # fmt: skip
    assert "llm_gave_up" in shelf.events
    assert 0 < len(shelf.delivered) < EPISODES
    check_every_step(shelf.delivered)
    with ChaosServer(perfect(Style.FULL)) as again:
        asyncio.run(play(again.base_url, shelf, limits=UNHURRIED))
    assert sorted(shelf.delivered, key=lambda one: one.id) == sorted(
        calm.delivered, key=lambda one: one.id
    )
