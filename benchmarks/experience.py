"""Real experience for benchmarks: all eight TextWorldExpress games, played and kept on disk.

Half of the episodes follow the expert loosely, half wander; both ask now and then for what the game
refuses. The same arguments give the same trajectories. A second call reads them from the cache.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from dreamgym import codec
from dreamgym.agents.near_miss import near_miss
from dreamgym.envs.registry import make_engine
from dreamgym.files import cache_dir
from dreamgym.protocols import Engine, Game
from dreamgym.types import (
    Action,
    Provenance,
    Source,
    Split,
    Step,
    StopReason,
    Task,
    Trajectory,
    derive_seed,
)

GAMES = {
    "twx/cookingworld?maxSteps=60&numDistractorItems=10&numIngredients=5&train=10000": 0.23,
    "twx/twc?includeDoors=1&maxSteps=60&numItemsToPutAway=4&numLocations=3&train=10000": 0.23,
    "twx/coin?maxSteps=60&numDistractorItems=10&numLocations=11&train=10000": 0.19,
    "twx/mapreader?maxSteps=60&numLocations=15&train=10000": 0.19,
    "twx/sorting?train=10000": 0.08,
    "twx/arithmetic?train=10000": 0.05,
    "twx/peckingorder?train=10000": 0.02,
    "twx/simonsays?train=10000": 0.01,
}
"""Each game, as large as it gets, and its share of the distinct transitions."""


def experience(transitions: int) -> Iterator[Trajectory]:
    """Yield trajectories with about that many distinct transitions, games in turn."""
    files = [_game_file(spec, round(transitions * share)) for spec, share in GAMES.items()]
    readers = [_read(path) for path in files]
    while readers:
        for reader in list(readers):
            try:
                yield next(reader)
            except StopIteration:
                readers.remove(reader)


def _read(path: Path) -> Iterator[Trajectory]:
    with gzip.open(path, "rb") as file:
        for line in file:
            yield codec.decode(line, Trajectory)


def _game_file(spec: str, quota: int) -> Path:
    name = spec.partition("?")[0].replace("/", "-")
    path = cache_dir("benchmarks") / f"{name}-{quota}.jsonl.gz"
    if not path.exists():
        began = time.perf_counter()
        engine = make_engine(spec)
        part = path.with_suffix(".part")
        try:
            with gzip.open(part, "wb", compresslevel=1) as file:
                for trajectory in _play(engine, quota):
                    file.write(codec.encode(trajectory).encode() + b"\n")
        finally:
            engine.close()
        part.rename(path)
        print(f"played {spec}: {time.perf_counter() - began:.0f} s", flush=True)
    return path


def _play(engine: Engine, quota: int) -> Iterator[Trajectory]:
    """Play until the quota of distinct transitions is reached, or nothing new turns up."""
    distinct: set[tuple[str, ...]] = set()
    stale = 0
    for number, task in enumerate(cycle(engine.tasks(Split.TRAIN))):
        game = engine.open(task)
        trajectory = _episode(engine, game, task, number)
        game.close()
        before = len(distinct)
        distinct.update((t.goal, t.state, t.action, t.next_state) for t in trajectory.transitions())
        stale = stale + 1 if len(distinct) == before else 0
        yield trajectory
        if len(distinct) >= quota or stale > 500:
            return


def _episode(engine: Engine, game: Game, task: Task, number: int) -> Trajectory:
    rng = random.Random(derive_seed(task.id, number))
    opening = game.reset(0)
    now, steps, met = opening.observation, [], set()
    plan = list(game.expert()) if rng.random() < 0.5 else []
    while True:
        met.update(now.admissible or ())
        action = _choose(rng, plan, now.admissible or (), sorted(met))
        result = game.step(action)
        steps.append(Step(Action(action), result))
        now = result.observation
        if result.terminated or result.truncated:
            break
    return Trajectory(
        id=f"{task.id}/{number}",
        task=opening.task,
        opening=opening.observation,
        steps=tuple(steps),
        stop=StopReason.TERMINATED if result.terminated else StopReason.TRUNCATED,
        provenance=Provenance(
            Source.REAL, "benchmark", seed=number, engine=engine.version, mapper=engine.mapper
        ),
    )


def _choose(
    rng: random.Random, plan: list[str], admissible: tuple[str, ...], met: list[str]
) -> str:
    draw = rng.random()
    if draw < 0.15:
        miss = near_miss(rng, admissible=admissible, known=met, plan=tuple(plan))
        if miss is not None:
            return miss
    if plan and draw < 0.85:
        return plan.pop(0)
    return rng.choice(admissible) if admissible else "look around"
