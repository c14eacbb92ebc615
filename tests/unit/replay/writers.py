"""A program for the durability tests: forks writers of one store, and may kill them.

`writers.py crash STORE ROUNDS SEED` kills two writers per round at a random moment and checks the
store after each. `writers.py together STORE WRITERS BATCHES` lets several writers finish.
Forking is cheap, so that many kills fit in a test; nothing is opened before the fork.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

from dreamgym.replay import Capacity, open_store
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

DREAMS = Capacity(dream=60)
STEPS = 5


def trajectory(name: str, source: Source, words: str) -> Trajectory:
    texts = [f"You are in {words} room {index}." for index in range(STEPS + 1)]
    return Trajectory(
        id=name,
        task=Task(f"task {name}", "toy/house", name, Split.TRAIN, "go on"),
        opening=Observation(texts[0]),
        steps=tuple(Step(Action("go on"), StepResult(Observation(text))) for text in texts[1:]),
        stop=StopReason.STEP_LIMIT,
        provenance=Provenance(source, "writer", mapper="m"),
    )


def write_forever(path: Path, name: str, source: Source, acknowledged: int) -> None:
    with open_store(path, capacity=DREAMS, exact_limit=40) as store:
        turn = 0
        while True:
            batch = [trajectory(f"{name}-{turn}-{n}", source, f"{name} {turn} {n}") for n in (0, 1)]
            store.add(batch)
            os.write(acknowledged, "".join(f"{one.id}\n" for one in batch).encode())
            store.search(batch[0].opening.text, "go on", k=3)
            turn += 1


def fork(work) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - a fork must not return into the parent
            print(f"writer failed: {error!r}", flush=True)
            os._exit(1)
    return child


def crash(path: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    promised = path.with_name("acknowledged")
    acknowledged = os.open(promised, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    kills = 0
    for number in range(rounds):
        before = promised.stat().st_size
        children = [
            fork(lambda s=source: write_forever(path, f"{s}{number}", s, acknowledged))  # noqa: B023
            for source in Source
        ]
        while promised.stat().st_size == before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.12))
        rng.shuffle(children)
        for child in children:
            os.kill(child, signal.SIGKILL)
            time.sleep(rng.choice([0.0, 0.01]))
        for child in children:
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                raise SystemExit(f"round {number}: a writer ended by itself")
            kills += 1
        check(path, promised.read_text().split())
    print(f"{kills} kills, {len(promised.read_text().split())} acknowledged", flush=True)


def check(path: Path, promised: list[str]) -> None:
    with open_store(path, capacity=DREAMS, exact_limit=40) as store:
        lost = set(promised) - store.trajectory_ids()
        if lost:
            raise SystemExit(f"lost {sorted(lost)[:5]}")
        real = list(store.trajectories(source=Source.REAL))
        held = {group.source: group.transitions for group in store.stats()}
        if held.get(Source.REAL, 0) != sum(len(one.steps) for one in real):
            raise SystemExit(f"{held} transitions of {len(real)} real trajectories")
        if held.get(Source.DREAM, 0) > 60:
            raise SystemExit(f"{held}: more dreams than there is room for")
        for one in random.Random(len(real)).sample(real, min(3, len(real))):
            step = next(one.transitions())
            (hit,) = store.search(step.state, step.action, k=1, source=Source.REAL)
            if hit.transition != step:
                raise SystemExit(f"searched {step.id}, found {hit.transition.id}")
    connection = sqlite3.connect(path)
    verdict = connection.execute("PRAGMA integrity_check").fetchall()
    loose = connection.execute(
        "SELECT (SELECT count(*) FROM transitions), (SELECT count(*) FROM vectors),"
        " (SELECT count(*) FROM transitions JOIN vectors USING (row, grp))"
    ).fetchone()
    connection.close()
    if verdict != [("ok",)] or len(set(loose)) != 1:
        raise SystemExit(f"damaged: {verdict} {loose}")


def together(path: Path, writers: int, batches: int) -> None:
    def work(writer: int) -> None:
        with open_store(path) as store:
            for turn in range(batches):
                own = trajectory(f"own {writer} {turn}", Source.REAL, f"own {writer} {turn}")
                same_id = trajectory(f"shared {turn}", Source.REAL, f"shared {turn}")
                same_steps = trajectory(f"repeat {writer} {turn}", Source.REAL, f"repeat {turn}")
                store.add([own, same_id, same_steps])
                assert store.search(own.opening.text, "go on", k=1)

    children = [fork(lambda n=number: work(n)) for number in range(writers)]
    if any(os.waitpid(child, 0)[1] for child in children):
        raise SystemExit("a writer failed")


if __name__ == "__main__":
    job, store_path, first, second = sys.argv[1:]
    {"crash": crash, "together": together}[job](Path(store_path), int(first), int(second))
