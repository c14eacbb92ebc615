"""Speed of the experience store on real (state, action) texts, beside faiss and plain NumPy.

    python benchmarks/replay.py --out benchmarks/results/replay.md

Plays TextWorldExpress for the texts once (about 20 minutes for a million distinct steps; kept in
the cache folder), builds the stores once, then measures. Every query is a step of an episode that
is not in the store. `--sizes 10000 100000` leaves the long part out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path

import numpy as np
from experience import experience

from dreamgym.files import cache_dir
from dreamgym.replay import ExperienceStore, Query, open_store
from dreamgym.replay.index import EXACT_LIMIT
from dreamgym.replay.lookup import READ, Batch, nearest
from dreamgym.types import Trajectory, Transition

K = 8
BATCH = 64
"""Trajectories per call of `add`, and queries per batched search."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one kind of call."""

    median: float
    p90: float
    cpu: float
    """Median processor time, all threads: what remains when the machine is busy."""

    def __str__(self) -> str:
        return f"{self.median:.2f} | {self.p90:.2f} | {self.cpu:.2f}"


def timed(calls: Iterator[Callable[[], object]]) -> Timing:
    """Time each call on its own."""
    wall, cpu = [], []
    for call in calls:
        begin, spent = time.perf_counter(), time.process_time()
        call()
        wall.append(1e3 * (time.perf_counter() - begin))
        cpu.append(1e3 * (time.process_time() - spent))
    wall.sort()
    return Timing(statistics.median(wall), wall[int(0.9 * len(wall))], statistics.median(cpu))


def batches(trajectories: Iterator[Trajectory]) -> Iterator[list[Trajectory]]:
    """Cut a stream of trajectories into what one call of `add` gets."""
    while batch := list(islice(trajectories, BATCH)):
        yield batch


def split_queries(transitions: int) -> tuple[list[Transition], Iterator[Trajectory]]:
    """Hold some episodes back, and take one step of each as a query."""
    stream = experience(transitions)
    held_back = list(islice(stream, 0, 400))
    queries = []
    for number, trajectory in enumerate(held_back):
        steps = list(trajectory.transitions())
        queries.append(steps[(7 * number) % len(steps)])
    return queries, stream


def fill(store: ExperienceStore, trajectories: Iterator[Trajectory], limit: int) -> None:
    """Add until the store holds that many transitions."""
    held = sum(group.transitions for group in store.stats())
    for batch in batches(trajectories):
        held += store.add(batch).transitions
        if held >= limit:
            return
    print(f"only {held} distinct transitions for a store of {limit}", file=sys.stderr)


def measure_appends(transitions: int, most: int) -> str:
    """Add real trajectories to a new store, reading them beforehand."""
    _, stream = split_queries(most)
    ready, steps = [], 0
    for batch in batches(stream):
        ready.append(batch)
        steps += sum(len(trajectory.steps) for trajectory in batch)
        if steps >= transitions:
            break
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "new.sqlite") as store:
        begin, spent = time.perf_counter(), time.process_time()
        for batch in ready:
            store.add(batch)
        wall, cpu = time.perf_counter() - begin, time.process_time() - spent
        size = (Path(folder) / "new.sqlite").stat().st_size
    return (
        f"| append, {BATCH} trajectories per transaction | {steps / wall:,.0f} transitions/s"
        f" | {steps / cpu:,.0f} per cpu-second | {size / steps:.0f} bytes each on disk |"
    )


def measure_search(size: int, folder: Path, most: int) -> Iterator[str]:
    """Compare our search with faiss and NumPy over the same vectors and queries."""
    path = folder / f"store-{size}.sqlite"
    queries, stream = split_queries(most)
    with open_store(path) as store:
        if sum(group.transitions for group in store.stats()) < size:
            fill(store, stream, size)
        begin = time.perf_counter()
        store.search("warm", "up", k=K)
        ready = time.perf_counter() - begin
        asked = [Query(step.state, step.action) for step in queries]
        whole = timed((lambda q=q: store.search(q.state, q.action, k=K)) for q in asked)
        groups = [asked[start : start + BATCH] for start in range(0, len(asked), BATCH)]
        store.search_batch(groups[0], k=K)
        batch = timed((lambda g=g: store.search_batch(g, k=K)) for g in groups[:-1])
        within = timed(
            (lambda s=s: store.search(s.state, s.action, k=K, env=s.env)) for s in queries
        )
        keys = store._encoder.encode([q.state for q in asked], [q.action for q in asked])
        index_only, found = index_search(store, keys)
        rows, vectors = all_vectors(store)
    slow = keys[:100] if size > EXACT_LIMIT else keys
    numpy_time = numpy_search(vectors, slow)
    yield f"| {len(rows):,} | DreamGym `search` | {whole} | |"
    yield f"| | the same, one environment only | {within} | |"
    yield f"| | the same, {BATCH} at once, each | {scaled(batch, BATCH)} | |"
    right = recall(found, exact_bars(vectors, keys), rows, vectors, keys)
    yield f"| | DreamGym, index only | {index_only} | {right:.4f} |"
    yield f"| | NumPy, matrix product | {numpy_time} | 1 |"
    yield from faiss_rows(vectors, slow, index_only)
    yield (
        f"| | | NumPy / ours: {numpy_time.median / index_only.median:.1f}x"
        f" ({numpy_time.cpu / index_only.cpu:.1f}x cpu) | | | first search {ready:.1f} s |"
    )


def scaled(timing: Timing, count: int) -> Timing:
    """Share the time of a batch among its queries."""
    return Timing(timing.median / count, timing.p90 / count, timing.cpu / count)


def index_search(store: ExperienceStore, keys: np.ndarray) -> tuple[Timing, list[list[int]]]:
    """Search without embedding and without reading transitions back."""
    nothing = np.empty(0, dtype=np.int64)
    found: list[list[int]] = []
    with store._database.reading() as connection:
        moment = store._catch_up(connection)
        visible = list(moment.groups)

        def one(key: np.ndarray) -> None:
            batch = Batch([0], key[None], [nothing])
            (hits,) = nearest(connection, moment.view, batch, visible=visible, k=K)
            found.append([hit.row for hit in hits])

        timing = timed((lambda key=key: one(key)) for key in keys)
    return timing, found


def all_vectors(store: ExperienceStore) -> tuple[np.ndarray, np.ndarray]:
    """Read every stored vector."""
    with store._database.reading() as connection:
        cursor = connection.execute("SELECT row, vector FROM vectors ORDER BY row")
        rows, parts = [], []
        while batch := cursor.fetchmany(16_384):
            rows += [row for row, _ in batch]
            joined = np.frombuffer(b"".join(blob for _, blob in batch), dtype=np.float16)
            parts.append(joined.reshape(len(batch), -1).astype(np.float32))
    return np.array(rows), np.concatenate(parts)


def numpy_search(vectors: np.ndarray, keys: np.ndarray) -> Timing:
    """Search by one product and a partition."""

    def one(key: np.ndarray) -> None:
        scores = vectors @ key
        best = np.argpartition(scores, -K)[-K:]
        best[np.argsort(-scores[best])]

    one(keys[0])
    return timed((lambda key=key: one(key)) for key in keys)


def exact_bars(vectors: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return each query's k-th best score."""
    bars = [
        np.partition(keys[start : start + 50] @ vectors.T, -K, axis=1)[:, -K]
        for start in range(0, len(keys), 50)
    ]
    return np.concatenate(bars)


def recall(
    found: list[list[int]],
    bars: np.ndarray,
    rows: np.ndarray,
    vectors: np.ndarray,
    keys: np.ndarray,
) -> float:
    """Count a returned row as right if it scores as well as the true k-th best."""
    right = 0
    for hits, bar, key in zip(found, bars, keys, strict=True):
        places = np.searchsorted(rows, hits)
        right += int((vectors[places] @ key >= bar - 1e-6).sum())
    return right / (K * len(keys))


def faiss_rows(vectors: np.ndarray, keys: np.ndarray, ours: Timing) -> Iterator[str]:
    """Search with faiss, if it is installed."""
    try:
        import faiss
    except ImportError:
        yield "| | faiss is not installed | | | | |"
        return
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    timing = timed((lambda key=key: flat.search(key[None], K)) for key in keys)
    yield f"| | faiss Flat | {timing} | 1 |"
    yield (
        f"| | | faiss Flat / ours: {timing.median / ours.median:.1f}x"
        f" ({timing.cpu / ours.cpu:.1f}x cpu) | | | |"
    )


def measure_usearch(size: int, folder: Path, most: int) -> Iterator[str]:
    """Build and search an HNSW graph of usearch over the same vectors."""
    from usearch.index import Index

    queries, _ = split_queries(most)
    with open_store(folder / f"store-{size}.sqlite") as store:
        keys = store._encoder.encode([q.state for q in queries], [q.action for q in queries])
        rows, vectors = all_vectors(store)
    bars = exact_bars(vectors, keys)
    index = Index(ndim=vectors.shape[1], metric="cos", dtype="i8")
    begin, spent = time.perf_counter(), time.process_time()
    index.add(np.arange(len(vectors)), vectors)
    wall, cpu = time.perf_counter() - begin, time.process_time() - spent
    for expansion in (64, 256):
        index.expansion_search = expansion
        found: list[np.ndarray] = []

        def ask(key: np.ndarray, found: list = found) -> None:
            found.append(index.search(key, 64).keys)

        timing = timed((lambda key=key, ask=ask: ask(key)) for key in keys)
        best = [
            _best(rows[hits.astype(int)].tolist(), key, rows, vectors)
            for hits, key in zip(found, keys, strict=True)
        ]
        right = recall(best, bars, rows, vectors, keys)
        yield f"| {len(rows):,} | usearch HNSW i8, expansion {expansion} | {timing} | {right:.4f} |"
    yield f"| | | built in {wall:.0f} s ({cpu:.0f} cpu-s) | | | |"


def _best(hits: list[int], key: np.ndarray, rows: np.ndarray, vectors: np.ndarray) -> list[int]:
    places = np.searchsorted(rows, hits)
    return rows[places[np.argsort(-(vectors[places] @ key))[:K]]].tolist()


def measure_opening(path: Path) -> str:
    """Open a store in a fresh process and search once."""
    done = subprocess.run(
        [sys.executable, __file__, "--open", str(path)], capture_output=True, text=True, check=True
    )
    facts = json.loads(done.stdout)
    return (
        f"| open `{path.name}` and search once, new process | {facts['open']:.2f} s open"
        f" + {facts['search']:.2f} s first search | memory {facts['own']:.0f} MB own"
        f" + {facts['mapped']:.0f} MB mapped file ({facts['before']:.0f} MB before)"
        f" | store {facts['store']:.0f} MB, index file {facts['cells']:.0f} MB |"
    )


def open_once(path: Path) -> None:
    """Print what opening costs, as JSON."""
    before = memory()
    begin = time.perf_counter()
    store = open_store(path)
    opened = time.perf_counter() - begin
    begin = time.perf_counter()
    store.search("kitchen\nfridge: closed", "open fridge", k=K)
    searched = time.perf_counter() - begin
    after = memory()
    cells = path.with_name(path.name + ".cells")
    facts = {
        "open": opened,
        "search": searched,
        "before": before["RssAnon"] + before["RssFile"],
        "own": after["RssAnon"],
        "mapped": after["RssFile"],
        "store": path.stat().st_size / 1e6,
        "cells": cells.stat().st_size / 1e6 if cells.exists() else 0.0,
    }
    print(json.dumps(facts))


def memory() -> dict[str, float]:
    """Return this process's resident memory in MB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        return {"RssAnon": peak, "RssFile": 0.0}
    return {
        name.rstrip(":"): int(value) / 1e3
        for name, value, *_ in (line.split() for line in lines if line.startswith("Rss"))
    }


def measure_build(path: Path) -> str:
    """Throw the index file away and make it again."""
    cells = path.with_name(path.name + ".cells")
    cells.unlink(missing_ok=True)
    begin, spent = time.perf_counter(), time.process_time()
    with open_store(path) as store:
        store.search("a", "b", k=1)
    wall, cpu = time.perf_counter() - begin, time.process_time() - spent
    return f"| make the index file of `{path.name}` | {wall:.1f} s | {cpu:.1f} cpu-s | |"


def installed(package: str) -> str:
    """Return a package's name and version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def report(arguments: argparse.Namespace) -> Iterator[str]:
    """Run everything and yield the lines of the report."""
    folder = cache_dir("benchmarks")
    most = max(round(1.05 * max(arguments.sizes)), 1_050_000)
    packages = ", ".join(installed(name) for name in ("numpy", "faiss-cpu", "usearch"))
    yield "# Replay: speed on real texts\n"
    yield f"Command: `python benchmarks/replay.py {' '.join(sys.argv[1:])}`\n"
    yield (
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python"
        f" {platform.python_version()}, {packages}; load average at the start"
        f" {os.getloadavg()[0]:.1f}.\n"
    )
    yield (
        f"Texts: eight TextWorldExpress games. Top-{K}; {EXACT_LIMIT:,} transitions are searched"
        f" exactly, more of them through cells (about {READ:,} vectors read). Times in ms.\n"
    )
    yield "| what | | | |\n|---|---|---|---|"
    yield measure_appends(arguments.appends, most)
    large = [folder / f"store-{size}.sqlite" for size in arguments.sizes if size > EXACT_LIMIT]
    tables = [list(measure_search(size, folder, most)) for size in arguments.sizes]
    for path in large:
        yield measure_build(path)
    for size in arguments.sizes:
        yield measure_opening(folder / f"store-{size}.sqlite")
    yield "\n| rows | searched by | median | p90 | cpu | recall@8 |\n|---|---|---|---|---|---|"
    for table in tables:
        yield from table
    for size in arguments.usearch:
        yield from measure_usearch(size, folder, most)
    yield f"\nLoad average at the end {os.getloadavg()[0]:.1f}."


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--appends", type=int, default=50_000)
    parser.add_argument("--usearch", type=int, nargs="*", default=[], help="sizes for HNSW too")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        open_once(arguments.open)
        return
    lines = []
    for line in report(arguments):
        print(line, flush=True)
        lines.append(line)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
