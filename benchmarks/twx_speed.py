"""How fast TextWorldExpress steps through `Game.step`, how much of that is ours, how short states.

    python benchmarks/twx_speed.py [--steps 3000] [--warm 1000]

A random walker plays the training tasks of each game in one process. "Ours" is the share of the
time that is not spent waiting for Java: reading the answer, mapping it, building the result.
"CPU" is the same share of processor time, ours against all of Python's and Java's, which does not
depend on what else the machine does. "Fewer" compares the mapped state with what the engine shows:
answer, room and inventory.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from dreamgym.envs.registry import make_engine
from dreamgym.envs.textworld_express.engine import TwxEngine
from dreamgym.envs.textworld_express.games import GENERATION
from dreamgym.types import Split

COLUMNS = ("steps/s", "us/step", "ours us", "ours", "ours CPU", "reset ms", "Java MB")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Stopwatch:
    """Adds up the time that calls of a function take."""

    function: object
    seconds: float = 0.0
    processor: float = 0.0

    def __call__(self, command):
        """Call the function."""
        start, busy = time.perf_counter(), time.process_time()
        try:
            return self.function(command)
        finally:
            self.seconds += time.perf_counter() - start
            self.processor += time.process_time() - busy


@dataclass
class Tally:
    """What a walk measured."""

    stepping: float = 0.0
    waiting: float = 0.0
    resetting: float = 0.0
    steps: int = 0
    resets: int = 0


def walk(engine: TwxEngine, steps: int, watch: Stopwatch) -> Tally:
    """Walk at random for so many steps."""
    tasks, rng, tally = cycle(engine.tasks(Split.TRAIN)), random.Random(0), Tally()
    while tally.steps < steps:
        game = engine.open(next(tasks))
        start = time.perf_counter()
        admissible = game.reset(0).observation.admissible
        tally.resetting += time.perf_counter() - start
        tally.resets += 1
        java, start = watch.seconds, time.perf_counter()
        while tally.steps < steps:
            result = game.step(rng.choice(admissible))
            admissible = result.observation.admissible
            tally.steps += 1
            if result.terminated or result.truncated:
                break
        tally.stepping += time.perf_counter() - start
        tally.waiting += watch.seconds - java
        game.close()
    return tally


def shorter(engine: TwxEngine, tasks: int = 25) -> tuple[float, float, float]:
    """Return how many times fewer characters and words states have, and their words."""
    rng = random.Random(1)
    raw, mapped = [], []
    for task in engine.tasks(Split.TRAIN)[:tasks]:
        game = engine.open(task)
        result = game.reset(0)
        for _ in range(30):
            said = game.raw
            raw.append(f"{said.observation} {said.look} {said.inventory}")
            mapped.append(result.observation.text)
            result = game.step(rng.choice(result.observation.admissible))
            if result.terminated or result.truncated:
                break
        game.close()
    words = [sum(len(text.split()) for text in texts) for texts in (raw, mapped)]
    characters = [sum(map(len, texts)) for texts in (raw, mapped)]
    return characters[0] / characters[1], words[0] / words[1], words[1] / len(mapped)


def java_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    """Print one line per game."""
    parser = argparse.ArgumentParser(description="Speed of TextWorldExpress through Game.step.")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--warm", type=int, default=1000)
    given = parser.parse_args()
    head = "".join(f"{column:>9}" for column in COLUMNS)
    print(f"{'game':14}{head}{'fewer chars':>13}{'fewer words':>13}{'words':>7}")
    for name in GENERATION:
        engine = make_engine(f"twx/{name}?holdout=seed")
        watch = Stopwatch(engine._jvm.ask)
        engine._jvm.ask = watch
        walk(engine, given.warm, watch)
        watch.processor = 0.0
        python, java = time.process_time(), java_seconds(engine.pid)
        found = walk(engine, given.steps, watch)
        python, java = time.process_time() - python, java_seconds(engine.pid) - java
        share = (python - watch.processor) / (python + java)
        ours = found.stepping - found.waiting
        characters, words, length = shorter(engine)
        print(
            f"{name:14}{found.steps / found.stepping:9.0f}"
            f"{found.stepping / found.steps * 1e6:9.0f}{ours / found.steps * 1e6:9.0f}"
            f"{ours / found.stepping:9.0%}{share:9.0%}{found.resetting / found.resets * 1e3:9.2f}"
            f"{memory_mb(engine.pid):9.0f}{characters:12.1f}x{words:12.1f}x{length:7.0f}"
        )
        engine.close()


if __name__ == "__main__":
    main()
