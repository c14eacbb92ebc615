"""Many episodes over few processes: none disturbs another, whatever an engine does."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dreamgym.envs.world import RealEnv, RealWorld, open_world
from dreamgym.errors import ConfigError, EnvCrash, EnvError, EnvTimeout, MissingDependency
from dreamgym.types import Split

SPEC = "py/misbehaving:make_engine"


def in_world(
    play: Callable[[RealWorld], Awaitable[None]],
    *,
    spec: str = SPEC,
    workers: int = 1,
    time_limit: float = 30.0,
) -> None:
    async def run() -> None:
        async with open_world(spec, workers=workers, time_limit=time_limit) as world:
            await play(world)

    asyncio.run(run())


async def begin(world: RealWorld, number: int, *, seed: int = 7) -> RealEnv:
    task = (await world.tasks(Split.TRAIN))[number]
    env = await world.open(task)
    await env.reset(seed)
    return env


def wait_until_gone(*numbers: int) -> None:
    deadline = time.monotonic() + 10
    while any(map(is_alive, numbers)):
        assert time.monotonic() < deadline, f"still alive: {[n for n in numbers if is_alive(n)]}"
        time.sleep(0.02)


def is_alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def play_sixty_four(workers: int) -> list[str]:
    texts: list[str] = []

    async def play(world: RealWorld) -> None:
        envs = [await begin(world, n % 10, seed=n) for n in range(64)]

        async def episode(number: int, env: RealEnv) -> str:
            for turn in range(number % 5 + 1):
                result = await env.step(f"note{number}-{turn}")
            await env.close()
            return result.observation.text

        texts.extend(await asyncio.gather(*(episode(*pair) for pair in enumerate(envs))))
        assert world.stats().steps == sum(n % 5 + 1 for n in range(64))
        assert world.stats().restarts == 0

    in_world(play, workers=workers)
    return texts


def test_sessions_do_not_mix_and_placement_does_not_matter() -> None:
    texts = play_sixty_four(workers=2)
    assert texts[63] == "3/63: note63-0 note63-1 note63-2 note63-3"
    assert texts == play_sixty_four(workers=1)


def test_sessions_are_spread_evenly() -> None:
    async def play(world: RealWorld) -> None:
        envs = [await begin(world, n) for n in range(6)]
        homes = Counter([await env.expert() for env in envs])
        assert sorted(homes.values()) == [3, 3]
        home = await envs[0].expert()
        await envs[0].close()
        again = await begin(world, 0)
        assert await again.expert() == home, "the emptier worker gets the next session"

    in_world(play, workers=2)


@pytest.mark.parametrize("action", ["hang", "hold"])
def test_a_hang_fails_that_episode_only(action: str) -> None:
    async def play(world: RealWorld) -> None:
        bad, good = await begin(world, 0), await begin(world, 1)
        await good.step("first")
        late, fine = await asyncio.gather(
            bad.step(action), good.step("second"), return_exceptions=True
        )
        assert type(late) is EnvTimeout
        assert "env.step (task ledger-train-0): no answer in 1 s" in str(late)
        assert fine.observation.text == "1/7: first second"
        assert (await good.step("third")).observation.text == "1/7: first second third"
        with pytest.raises(EnvTimeout, match="no answer"):
            await bad.step("more")
        await bad.close()
        assert (world.stats().restarts, world.stats().replayed) == (1, 1)

    in_world(play, time_limit=1.0)


@pytest.mark.parametrize(
    ("action", "ending"),
    [("exit", "exit code 3"), ("segfault", "killed by SIGSEGV"), ("leave", "I am leaving")],
)
def test_a_crash_fails_that_episode_only(action: str, ending: str) -> None:
    async def play(world: RealWorld) -> None:
        bad, good, unused = [await begin(world, n) for n in range(3)]
        await good.step("first")
        dead, fine = await asyncio.gather(
            bad.step(action), good.step("second"), return_exceptions=True
        )
        assert type(dead) is EnvCrash
        assert ending in str(dead)
        assert fine.observation.text == "1/7: first second"
        await unused.close()  # nothing is replayed only to be closed
        assert (world.stats().restarts, world.stats().replayed) == (1, 1)

    in_world(play)


def test_a_crash_shows_what_was_printed_last() -> None:
    async def play(world: RealWorld) -> None:
        bad = await begin(world, 0)
        with pytest.raises(EnvCrash, match="these are my last words"):
            await bad.step("exit")

    in_world(play)


def test_killed_in_mid_step() -> None:
    async def play(world: RealWorld) -> None:
        bad, good = await begin(world, 0), await begin(world, 1)
        await good.step("first")
        (number,) = await bad.expert()
        slow = asyncio.create_task(bad.step("slow 20"))
        waiting = asyncio.create_task(good.step("second"))
        await asyncio.sleep(0.2)
        os.kill(int(number), signal.SIGKILL)
        with pytest.raises(EnvCrash, match="killed by SIGKILL"):
            await slow
        assert (await waiting).observation.text == "1/7: first second"

    in_world(play)


def test_random_kills_lose_and_repeat_nothing() -> None:
    """Whoever was not being worked on when a worker died ends as if nothing had happened."""
    kills, episodes, turns = 6, 24, 20

    async def play(world: RealWorld) -> None:
        envs = [await begin(world, number % 10, seed=number) for number in range(episodes)]

        async def episode(env: RealEnv) -> str:
            for turn in range(turns):
                result = await env.step(f"slow 0.00{turn % 5}")
            return result.observation.text

        async def kill() -> None:
            rng = random.Random(5)
            for _ in range(kills):
                await asyncio.sleep(rng.uniform(0.05, 0.3))
                probe = await begin(world, 0)
                (number,) = await probe.expert()
                await probe.close()
                os.kill(int(number), signal.SIGKILL)

        *texts, _ = await asyncio.gather(*map(episode, envs), kill(), return_exceptions=True)
        crashed = [text for text in texts if isinstance(text, EnvCrash)]
        written = " ".join(f"slow 0.00{turn % 5}" for turn in range(turns))
        expected = [f"{number % 10}/{number}: {written}" for number in range(episodes)]
        assert [text for text in texts if text not in crashed] == [
            wanted for wanted, text in zip(expected, texts, strict=True) if text not in crashed
        ]
        assert 1 <= world.stats().restarts <= kills
        assert len(crashed) <= world.stats().restarts

    in_world(play, workers=2)


def test_killed_while_idle_fails_nobody() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        await env.step("first")
        (number,) = await env.expert()
        os.kill(int(number), signal.SIGKILL)
        await asyncio.to_thread(wait_until_gone, int(number))
        await asyncio.sleep(0.05)
        assert (await env.step("second")).observation.text == "0/7: first second"

    in_world(play)


def test_what_an_engine_raises_fails_its_episode_and_the_worker_lives_on() -> None:
    async def play(world: RealWorld) -> None:
        bad, good = await begin(world, 9), await begin(world, 1)
        with pytest.raises(EnvError, match=r"env.step: ValueError: the drawer is stuck") as caught:
            await bad.step("raise")
        assert type(caught.value) is EnvError
        with pytest.raises(EnvError, match="the drawer is stuck"):
            await bad.step("go on")
        assert (await good.step("first")).observation.text == "1/7: first"
        with pytest.raises(EnvError, match=r"env.reset: RuntimeError: no luck with 1013"):
            await begin(world, 9, seed=1013)
        assert world.stats().restarts == 0

    in_world(play)


def test_a_failed_episode_is_closed_where_it_lives() -> None:
    async def play(world: RealWorld) -> None:
        bad, good = await begin(world, 0), await begin(world, 1)
        with pytest.raises(EnvError, match="the drawer is stuck"):
            await bad.step("raise")
        assert (await good.step("count")).observation.text == "1/7: 2 open"
        await bad.close()
        assert (await good.step("count")).observation.text == "1/7: 2 open 1 open"

    in_world(play)


def test_a_crash_is_seen_even_if_a_fork_holds_the_line() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        await env.step("fork")
        with pytest.raises(EnvCrash, match="exit code 3"):
            await asyncio.wait_for(env.step("exit"), timeout=10)

    in_world(play)


def test_a_worker_that_was_given_up_gets_no_more_sessions(tmp_path: Path) -> None:
    async def play(world: RealWorld) -> None:
        await begin(world, 0)
        with pytest.raises(EnvCrash, match="did not start, 3 times in a row: exit code 7"):
            await begin(world, 1)
        for number in range(3):
            await begin(world, number)

    in_world(play, spec=f"{SPEC}?start=alone {tmp_path}/first", workers=2)


def test_no_process_at_all_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    async def play(world: RealWorld) -> None:
        with pytest.raises(EnvCrash, match=r"no worker process could be started: .*No such file"):
            await world.info()

    in_world(play)


def test_an_answer_of_the_wrong_kind_is_an_error() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        with pytest.raises(EnvError, match="gives a StepResult, the engine gave str"):
            await env.step("nonsense")

    in_world(play)


def test_printing_does_not_disturb_the_channel(capfd: pytest.CaptureFixture[str]) -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        await env.step("print")
        assert (await env.step("on")).observation.text == "0/7: print on"

    in_world(play)
    assert capfd.readouterr() == ("", "")


def test_the_log_of_a_worker_does_not_grow_without_end() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        (number,) = await env.expert()
        log = Path(f"/proc/{number}/fd/1")
        await env.step("chatter")  # more than a megabyte, which is cut off soon
        deadline = time.monotonic() + 20
        while log.stat().st_size > 1 << 20 and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await env.step("print")
        assert 0 < log.stat().st_size < 20_000

    in_world(play, time_limit=1.0)


def test_an_engine_that_throws_dice_is_found_out_in_the_replay() -> None:
    async def play(world: RealWorld) -> None:
        bad, dicer, good = [await begin(world, n) for n in range(3)]
        await dicer.step("dice")
        await good.step("first")
        with pytest.raises(EnvCrash):
            await bad.step("exit")
        with pytest.raises(EnvCrash, match="the engine is not deterministic: 1 actions led to"):
            await dicer.step("on")
        assert (await good.step("second")).observation.text == "2/7: first second"

    in_world(play)


def test_a_session_that_breaks_its_replay_fails_alone(tmp_path: Path) -> None:
    async def play(world: RealWorld) -> None:
        bad, trap, good = [await begin(world, n) for n in range(3)]
        await trap.step(f"trap {tmp_path}/trap")
        await good.step("first")
        answers = await asyncio.gather(
            bad.step("exit"), trap.step("on"), good.step("second"), return_exceptions=True
        )
        assert [type(answer) for answer in answers[:2]] == [EnvCrash, EnvCrash]
        assert "env.restore (task ledger-train-1)" in str(answers[1])
        assert answers[2].observation.text == "2/7: first second"
        assert world.stats().restarts == 2

    in_world(play)


def test_an_ended_episode_is_still_ended_after_a_replay() -> None:
    async def play(world: RealWorld) -> None:
        bad, won = await begin(world, 0), await begin(world, 1)
        assert (await won.step("win")).success
        with pytest.raises(EnvCrash):
            await bad.step("exit")
        with pytest.raises(EnvError, match="ended after 1 steps"):
            await won.step("more")
        assert (await won.reset(8)).observation.text == "1/8: "

    in_world(play)


@pytest.mark.parametrize(
    ("start", "kind", "message"),
    [
        ("missing", MissingDependency, r"no ledger; run pip install 'dreamgym\[ledger\]'"),
        ("wrong", ConfigError, "start=wrong is wrong"),
    ],
)
def test_a_start_that_cannot_work_is_tried_once(
    start: str, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    async def play(world: RealWorld) -> None:
        answers = await asyncio.gather(world.info(), world.info(), return_exceptions=True)
        assert [type(answer) for answer in answers] == [kind, kind]
        with pytest.raises(kind, match=message):
            await world.tasks(Split.TRAIN)

    log = tmp_path / "starts"
    in_world(play, spec=f"{SPEC}?start={start}&log={log}", workers=2)
    assert log.read_text() == "start\n"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("exit", "did not start, 3 times in a row: exit code 5"),
        ("raise", "did not start, 3 times in a row: env.start: OSError: port 25333 is taken"),
    ],
)
def test_a_start_that_keeps_failing_is_given_up(start: str, message: str, tmp_path: Path) -> None:
    async def play(world: RealWorld) -> None:
        with pytest.raises(EnvCrash, match=message):
            await world.tasks(Split.TRAIN)
        with pytest.raises(EnvCrash, match=message):
            await world.tasks(Split.DEV)

    log = tmp_path / "starts"
    in_world(play, spec=f"{SPEC}?start={start}&log={log}")
    assert log.read_text() == "start\n" * 3


def test_a_start_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    async def play(world: RealWorld) -> None:
        assert len(await world.tasks(Split.TRAIN)) == 10

    in_world(play, spec=f"{SPEC}?start=once {tmp_path}/first")


def test_a_start_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dreamgym.envs.worker.START_SECONDS", 0.5)
    monkeypatch.setattr("dreamgym.envs.worker.START_ATTEMPTS", 1)

    async def play(world: RealWorld) -> None:
        with pytest.raises(EnvCrash, match=r"no hello in 0.5 s"):
            await world.tasks(Split.TRAIN)

    in_world(play, spec=f"{SPEC}?start=hang", time_limit=0.5)


def test_a_blocked_event_loop_is_not_the_engines_lateness() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        slow = asyncio.create_task(env.step("slow 0.1"))
        await asyncio.sleep(0.02)
        time.sleep(1.2)
        assert (await slow).observation.text == "0/7: slow 0.1"
        assert world.stats().restarts == 0

    in_world(play, time_limit=0.5)


def test_a_cancelled_step_stays_in_the_journal() -> None:
    async def play(world: RealWorld) -> None:
        bad, env = await begin(world, 0), await begin(world, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(env.step("slow 0.3"), timeout=0.1)
        assert (await env.step("on")).observation.text == "1/7: slow 0.3 on"
        with pytest.raises(EnvCrash):
            await bad.step("exit")
        assert (await env.step("end")).observation.text == "1/7: slow 0.3 on end"

    in_world(play)


def test_engine_time_is_counted() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        before = world.stats().engine_seconds
        await env.step("slow 0.2")
        assert 0.2 <= world.stats().engine_seconds - before < 5.0

    in_world(play)


def test_a_step_costs_little_beside_the_engine() -> None:
    """`benchmarks/workers.py` measures about 50 us; the bound leaves room for a slow machine."""

    async def play(world: RealWorld) -> None:
        envs = [await begin(world, number % 10) for number in range(64)]

        async def used() -> float:
            theirs = (await envs[0].step("cpu")).observation.text.split()[-1]
            return time.process_time() + float(theirs)

        before = await used()
        for _ in range(30):
            await asyncio.gather(*(env.step("note") for env in envs))
        assert (await used() - before) / (30 * 64) < 300e-6

    in_world(play)


def test_closing_ends_the_processes_and_what_they_started(tmp_path: Path) -> None:
    numbers: list[int] = []

    async def play(world: RealWorld) -> None:
        for place in range(2):
            env = await begin(world, place)
            await env.step(f"child {tmp_path}/{place}")
            numbers.extend(map(int, await env.expert()))
            numbers.append(int((tmp_path / str(place)).read_text()))
        assert all(map(is_alive, numbers))

    in_world(play, workers=2)
    assert len(set(numbers)) == 4
    wait_until_gone(*numbers)


def test_closing_answers_those_who_wait() -> None:
    async def play(world: RealWorld) -> None:
        env = await begin(world, 0)
        (number,) = await env.expert()
        slow = asyncio.create_task(env.step("hang"))
        await asyncio.sleep(0.1)
        await world.close()
        with pytest.raises(EnvError, match="the world was closed"):
            await slow
        with pytest.raises(EnvError, match="the world was closed"):
            await world.tasks(Split.DEV)
        await env.close()
        assert not is_alive(int(number))

    in_world(play)


def test_a_world_belongs_to_one_event_loop() -> None:
    world = open_world(SPEC, workers=1)

    async def use() -> None:
        try:
            await world.info()
        finally:
            await world.close()

    asyncio.run(use())
    with pytest.raises(ConfigError, match="belongs to the event loop"):
        asyncio.run(world.tasks(Split.TRAIN))
    with pytest.raises(ConfigError, match="belongs to the event loop"):
        asyncio.run(world.close())


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        open_world(SPEC, workers=0)
    with pytest.raises(ConfigError, match="time limit"):
        open_world(SPEC, time_limit=0.0)


PARENT = """
import asyncio, sys
from dreamgym.envs.world import open_world
from dreamgym.types import Split

async def main(path, action):
    async with open_world("py/misbehaving:make_engine", workers=2) as world:
        envs = [await world.open(task) for task in (await world.tasks(Split.TRAIN))[:2]]
        for env in envs:
            await env.reset(0)
        await envs[0].step(f"child {path}")
        print(*[(await env.expert())[0] for env in envs], open(path).read(), flush=True)
        await asyncio.gather(*(env.step(action) for env in envs))
        await asyncio.sleep(600)  # until it is killed

asyncio.run(main(*sys.argv[1:]))
"""


def run_parent(action: str, tmp_path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "child"), action],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    numbers = [int(word) for word in parent.stdout.readline().split()]
    assert len(numbers) == 3
    assert all(map(is_alive, numbers))
    time.sleep(0.2)
    return parent, numbers


@pytest.mark.parametrize("action", ["hang", "hold", "slow 0"])
def test_no_worker_outlives_a_killed_parent(action: str, tmp_path: Path) -> None:
    parent, numbers = run_parent(action, tmp_path)
    parent.kill()
    parent.communicate()
    wait_until_gone(*numbers)


def test_an_interrupt_shows_no_traceback_of_a_worker(tmp_path: Path) -> None:
    parent, numbers = run_parent("hang", tmp_path)
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=20)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "engine_process" not in errors
    assert "misbehaving.py" not in errors
    wait_until_gone(*numbers)
