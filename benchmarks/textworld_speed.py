"""How fast TextWorld games are played, and how much of that time is spent outside TextWorld.

Run: python benchmarks/textworld_speed.py [SPEC ...]
Plays random admissible commands, one in five of them a slip, in one process and one game at a time.
"""

from __future__ import annotations

import random
import sys
from time import perf_counter, process_time

from dreamgym.envs.registry import make_engine
from dreamgym.types import Split

SPECS = (
    "textworld/coin_collector?level=5",
    "textworld/treasure_hunter?level=13",
    "textworld/simple",
    "textworld/cooking",
    "textworld/cooking?recipe=3&take=3&go=9&open=1",
)
STEPS = 400


def measure(spec: str) -> dict[str, float]:
    """Play one held-out game of a spec."""
    engine = make_engine(spec)
    started = perf_counter()
    game = engine.open(engine.tasks(Split.TEST)[0])
    opening_seconds = perf_counter() - started
    choose = random.Random(0)
    inside = 0.0
    step_inside = game._env.step

    def timed(command: str):
        nonlocal inside
        begun = process_time()
        answer = step_inside(command)
        inside += process_time() - begun
        return answer

    game._env.step = timed
    admissible = game.reset(0).observation.admissible
    total = 0.0
    for _ in range(STEPS):
        command = choose.choice(admissible) if choose.random() < 0.8 else "take moon"
        begun = process_time()
        result = game.step(command)
        total += process_time() - begun
        ended = result.terminated or result.truncated
        admissible = (game.reset(0) if ended else result).observation.admissible
    game.close()
    return {"open": opening_seconds, "rate": STEPS / total, "outside": 1 - inside / total}


def main() -> None:
    """Print a table."""
    print(f"{'spec':<50} {'open s':>7} {'steps/s (CPU)':>14} {'outside TextWorld':>18}")
    for spec in sys.argv[1:] or SPECS:
        row = measure(spec)
        print(f"{spec:<50} {row['open']:7.2f} {row['rate']:14.0f} {row['outside']:18.1%}")


if __name__ == "__main__":
    main()
