import asyncio
from dataclasses import replace

import pytest

from dreamgym.agents import Behaviour, make_behaviour
from dreamgym.errors import ConfigError, LLMBudget, LLMTimeout
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.rollout.record import Recorded, record
from dreamgym.testing import CorridorWorld
from dreamgym.types import Action, Source, Split, StopReason, Trajectory

ANSWERER = Answerer(Source.REAL, "corridor 1", "m")


def slots_for(world, *, episodes=20, policy="expert", max_steps=30, seed=0):
    return plan_slots(
        world.tasks(Split.TRAIN),
        episodes=episodes,
        behaviour=make_behaviour(policy),
        answerer=ANSWERER,
        max_steps=max_steps,
        seed=seed,
    )


def play(world, slots, *, concurrency=8) -> list[Trajectory]:
    async def run():
        return [t async for t in collect(slots, world, concurrency=concurrency)]

    return asyncio.run(run())


def test_results_come_in_order_whatever_finishes_first():
    world = CorridorWorld(jitter=0.002)
    slots = slots_for(world)
    played = play(world, slots)
    assert [t.id for t in played] == [slot.trajectory_id for slot in slots]
    assert all(t.success and t.task.goal for t in played)
    assert world.open_now == 0


@pytest.mark.parametrize("policy", ["expert", "random", "noisy", "probe", "mixed"])
def test_results_do_not_depend_on_what_runs_beside(policy):
    alone = play(CorridorWorld(), slots_for(CorridorWorld(), policy=policy), concurrency=1)
    crowd = play(CorridorWorld(jitter=0.002), slots_for(CorridorWorld(), policy=policy))
    assert alone == crowd


def test_concurrency_is_a_limit_and_is_used():
    world = CorridorWorld(jitter=0.002)
    play(world, slots_for(world, episodes=40), concurrency=5)
    assert world.most_open == 5


def test_a_broken_episode_is_data_and_harms_no_other():
    def breaks(task, step):
        return (task.key, step) in {("3", 2), ("5", -1)}

    world = CorridorWorld(breaks=breaks)
    played = play(world, slots_for(world, episodes=10))
    whole = play(CorridorWorld(), slots_for(CorridorWorld(), episodes=10))
    fallen, closed = played[3], played[5]
    assert fallen.stop == StopReason.FAILED
    assert (fallen.error.kind, fallen.error.where) == ("EnvError", "env.step")
    assert len(fallen.steps) == 2
    assert not fallen.success and fallen.total_reward == 0.0
    assert (closed.error.where, closed.steps) == ("world.open", ())
    assert [t for t in played if t.error is None] == [
        t for index, t in enumerate(whole) if index not in (3, 5)
    ]
    assert world.open_now == 0


def test_an_agent_that_breaks_is_to_blame():
    class Thoughtless:
        async def act(self, task, past, now):
            raise ZeroDivisionError("no idea")

    world = CorridorWorld()
    slot = slots_for(world, episodes=1)[0]
    broken = Behaviour("mine", lambda env, seed: Thoughtless())
    [played] = play(world, [replace(slot, behaviour=broken)])
    assert (played.error.kind, played.error.where) == ("AgentError", "agent.act")
    assert "ZeroDivisionError: no idea" in played.error.message


def test_the_callers_limit_is_no_loss_and_no_end():
    world = CorridorWorld()
    played = play(world, slots_for(world, episodes=10, max_steps=4))
    assert [t.stop for t in played[:5]] == [StopReason.TERMINATED] * 4 + [StopReason.STEP_LIMIT]
    assert not played[4].steps[-1].result.terminated


def test_ids_and_seeds_follow_from_the_run_and_the_slot():
    world = CorridorWorld()
    first, again, other = (slots_for(world, seed=seed) for seed in (0, 0, 1))
    assert [s.trajectory_id for s in first] == [s.trajectory_id for s in again]
    assert not {s.trajectory_id for s in first} & {s.trajectory_id for s in other}
    assert len({s.provenance.seed for s in first}) == len(first)
    assert first[0].task == first[10].task
    assert first[0].trajectory_id != first[10].trajectory_id


def test_an_empty_split_is_an_error():
    with pytest.raises(ConfigError, match="split is empty"):
        plan_slots(
            [],
            episodes=1,
            behaviour=make_behaviour("expert"),
            answerer=ANSWERER,
            max_steps=1,
            seed=0,
        )


def test_stopping_early_leaves_nothing_running():
    world = CorridorWorld(jitter=0.002)

    async def run():
        stream = collect(slots_for(world, episodes=50), world, concurrency=8)
        first = await anext(stream)
        await stream.aclose()
        return first, asyncio.all_tasks() - {asyncio.current_task()}

    first, left = asyncio.run(run())
    assert first.success
    assert not left
    assert world.open_now == 0


class ListStore:
    def __init__(self):
        self.kept: list[Trajectory] = []

    def add(self, trajectories):
        self.kept += trajectories


def test_an_interrupted_recording_goes_on_where_it_was():
    world, store, failed = CorridorWorld(breaks=lambda t, s: t.key == "7"), ListStore(), []
    slots = slots_for(world, episodes=30, policy="mixed")

    def interrupt(state: Recorded):
        if state.done == 11:
            raise KeyboardInterrupt

    def run(on_progress):
        finished = {t.id for t in [*store.kept, *failed]}
        asyncio.run(
            record(
                slots,
                world,
                store,
                finished=finished,
                concurrency=4,
                on_failure=failed.append,
                on_progress=on_progress,
            )
        )

    with pytest.raises(KeyboardInterrupt):
        run(interrupt)
    kept = len(store.kept) + len(failed)
    assert 11 <= kept < 30
    states = []
    run(states.append)
    assert [state.done for state in states[:2]] == [kept, kept + 1]
    assert states[-1].done == 30
    whole = play(CorridorWorld(), slots_for(CorridorWorld(), episodes=30, policy="mixed"))
    assert sorted(store.kept, key=lambda t: t.id[-6:]) == [t for t in whole if t.task.key != "7"]
    assert {t.task.key for t in failed} == {"7"}


def test_an_interrupt_keeps_what_waits_behind_a_slow_episode():
    """Slot 0 never ends; all others finish at once and must not be lost with it."""

    class Stuck:
        async def act(self, task, past, now):
            await asyncio.sleep(60)

    world, store = CorridorWorld(), ListStore()
    first, *others = slots_for(world, episodes=15)
    stuck = replace(first, behaviour=Behaviour("stuck", lambda env, seed: Stuck()))

    async def run():
        job = asyncio.create_task(
            record(
                [stuck, *others],
                world,
                store,
                finished=set(),
                concurrency=4,
                on_failure=lambda failed: None,
            )
        )
        await asyncio.sleep(0.3)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    asyncio.run(run())
    assert {t.id for t in store.kept} == {slot.trajectory_id for slot in others}
    assert world.open_now == 0


def test_a_text_that_no_file_can_hold_is_an_agents_failure():
    class Torn:
        async def act(self, task, past, now):
            return Action("\ud800")

    world = CorridorWorld()
    slot = replace(
        slots_for(world, episodes=1)[0], behaviour=Behaviour("torn", lambda env, seed: Torn())
    )
    [played] = play(world, [slot])
    assert (played.error.kind, played.error.where) == ("AgentError", "agent.act")


def test_an_agent_that_cannot_be_made_fails_its_episode_only():
    def refuse(env, seed):
        raise ValueError("no weights")

    world = CorridorWorld()
    first, *others = slots_for(world, episodes=3)
    played = play(world, [replace(first, behaviour=Behaviour("mine", refuse)), *others])
    assert (played[0].error.kind, played[0].error.where) == ("AgentError", "agent.make")
    assert all(t.success for t in played[1:])


@pytest.mark.parametrize(
    ("error", "stops"), [(LLMTimeout("late"), False), (LLMBudget("poor"), True)]
)
def test_a_silent_model_fails_its_episode_but_an_empty_purse_stops_the_run(error, stops):
    class Silent:
        async def act(self, task, past, now):
            raise error

    world = CorridorWorld()
    slot = replace(
        slots_for(world, episodes=1)[0], behaviour=Behaviour("llm", lambda env, seed: Silent())
    )
    if stops:
        with pytest.raises(LLMBudget):
            play(world, [slot])
    else:
        [played] = play(world, [slot])
        assert played.error.kind == "LLMTimeout"


def test_ids_know_every_setting_that_decides_an_episode():
    world = CorridorWorld()

    def ids(**settings):
        steps = settings.pop("max_steps", 30)
        return {
            slot.trajectory_id
            for slot in plan_slots(
                world.tasks(Split.TRAIN),
                episodes=5,
                behaviour=make_behaviour("noisy", **settings),
                answerer=ANSWERER,
                max_steps=steps,
                seed=0,
            )
        }

    assert ids() == ids()
    assert ids().isdisjoint(ids(max_steps=2))
    assert ids().isdisjoint(ids(noise=0.9))
