"""Does retrieval find the right steps? Compares embedders and weights on real experience.

    python benchmarks/retrieval_quality.py hashing:256:1.0 hashing:512:1.0 static::1.0

Each argument is embedder:dimensions:action_weight. Queries are recorded steps; only steps of other
trajectories of the same environment may be found. `action`, `verb`, `place` and `both` are the
shares of the four nearest steps that have the query's action, its first word, its first line of
state, its action and its first line. `refused` and `next` judge the nearest step alone: was it
refused as the query was, and how many words does its next state share with the true one?
"""

from __future__ import annotations

import re
import sys

import numpy as np
from experience import experience

from dreamgym.protocols import Embedder
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.key import KeyEncoder
from dreamgym.types import Transition

TRANSITIONS = 20_000
QUERIES = 150
"""Per environment."""
COLUMNS = ("action", "verb", "place", "both", "refused", "next")


def make(name: str, dimensions: str) -> Embedder:
    """Make an embedder by name."""
    if name == "static":
        from dreamgym.replay.embed_static import StaticEmbedder

        return StaticEmbedder()
    if name == "minilm":
        from dreamgym.replay.embed_minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    return HashingEmbedder(int(dimensions or 256))


def encode(encoder: KeyEncoder, steps: list[Transition]) -> np.ndarray:
    """Return the keys of all steps."""
    parts = [
        encoder.encode([s.state for s in part], [s.action for s in part])
        for part in (steps[start : start + 512] for start in range(0, len(steps), 512))
    ]
    return np.concatenate(parts)


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(re.findall(r"\w+", text))


def judge(query: Transition, found: list[Transition]) -> tuple[float, ...]:
    """Say how well the nearest steps fit a query."""
    action = [hit.action == query.action for hit in found]
    verb = [hit.action.split()[:1] == query.action.split()[:1] for hit in found]
    place = [hit.state.partition("\n")[0] == query.state.partition("\n")[0] for hit in found]
    both = [one and other for one, other in zip(action, place, strict=True)]
    best, truth = words(found[0].next_state), words(query.next_state)
    shared = len(best & truth) / max(1, len(best | truth))
    means = [float(np.mean(column)) for column in (action, verb, place, both)]
    return (*means, float(found[0].refused == query.refused), shared)


def evaluate(encoder: KeyEncoder, steps: list[Transition]) -> np.ndarray:
    """Return the mean of every column, each environment counting the same."""
    keys = encode(encoder, steps)
    envs = np.array([step.env for step in steps])
    owners = np.unique([step.trajectory_id for step in steps], return_inverse=True)[1]
    scores = []
    for env in sorted(set(envs)):
        mine = np.flatnonzero(envs == env)
        asked = np.random.default_rng(1).permutation(mine)[:QUERIES]
        results = []
        for number in asked:
            near = keys[mine] @ keys[number]
            near[owners[mine] == owners[number]] = -9.0
            best = mine[np.argsort(-near, kind="stable")[:4]]
            results.append(judge(steps[number], [steps[place] for place in best]))
        scores.append(np.mean(results, axis=0))
    return np.mean(scores, axis=0)


def main() -> None:
    """Print one line per setting."""
    steps = [step for one in experience(TRANSITIONS) for step in one.transitions()]
    print(f"{'':24}" + "".join(f"{name:>9}" for name in COLUMNS))
    for setting in sys.argv[1:] or ["hashing:256:1.0"]:
        name, dimensions, weight = setting.split(":")
        encoder = KeyEncoder(make(name, dimensions), action_weight=float(weight))
        row = evaluate(encoder, steps)
        print(f"{setting:24}" + "".join(f"{value:9.3f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
