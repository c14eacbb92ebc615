"""What a step costs beside the engine: CPU time of both sides of the worker channel.

    python benchmarks/workers.py --workers 2 --episodes 64

The engine does next to nothing, so what is measured is DreamGym: awaiting, packing, sending,
unpacking. CPU time, not wall time, so that a busy machine does not change the figure much.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from dreamgym.envs.seeded import SeededEngine
from dreamgym.envs.spec import EnvSpec
from dreamgym.envs.world import RealWorld, open_world
from dreamgym.types import Observation, Opening, Split, StepResult, Task

TEXT = "You are in the kitchen. You see a fridge, a counter, a stove and a table with an apple. "
ACTIONS = tuple(f"take thing {number}" for number in range(20))


class Idle:
    """A game that answers at once with a text and a list of ordinary size."""

    def __init__(self, task: Task, seed: int) -> None:
        self._task = task
        self._turn = 0

    def reset(self, seed: int) -> Opening:
        """Begin."""
        self._turn = 0
        return Opening(self._task, Observation(TEXT, ACTIONS))

    def step(self, action: str) -> StepResult:
        """Answer."""
        self._turn += 1
        return StepResult(Observation(f"{TEXT}{TEXT}{self._turn}", ACTIONS))

    def expert(self) -> tuple[str, ...]:
        """Tell how much CPU time this process has used."""
        return (str(time.process_time()),)

    def close(self) -> None:
        """Nothing to let go of."""


def make_engine(spec: EnvSpec) -> SeededEngine:
    """Make the engine."""
    return SeededEngine(spec, Idle, version="idle 1")


async def _cpu_seconds(world: RealWorld, workers: int) -> float:
    """Sum the CPU time of this process and of every worker."""
    envs = [await world.open(task) for task in (await world.tasks(Split.TRAIN))[:workers]]
    used = time.process_time()
    for env in envs:
        await env.reset(0)
        used += float((await env.expert())[0])
        await env.close()
    return used


async def _measure(workers: int, episodes: int, *, steps: int) -> None:
    async with open_world("py/workers:make_engine", workers=workers) as world:
        tasks = (await world.tasks(Split.TRAIN))[:episodes]

        async def play(task: Task) -> None:
            env = await world.open(task)
            await env.reset(0)
            for _ in range(steps):
                await env.step("take thing 7")
            await env.close()

        await asyncio.gather(*map(play, tasks))
        before, started = await _cpu_seconds(world, workers), time.perf_counter()
        await asyncio.gather(*map(play, tasks))
        wall = time.perf_counter() - started
        used = await _cpu_seconds(world, workers) - before
    done = len(tasks) * steps
    print(
        f"{workers} workers, {len(tasks)} episodes at once: {done / wall:,.0f} steps/s, "
        f"{used / done * 1e6:.0f} us CPU per step on both sides together"
    )


def main() -> None:
    """Read the options and measure."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--episodes", type=int, nargs="+", default=[1, 8, 64])
    options.add_argument("--steps", type=int, default=300)
    chosen = options.parse_args()
    for episodes in chosen.episodes:
        asyncio.run(_measure(chosen.workers, episodes, steps=chosen.steps))


if __name__ == "__main__":
    main()
