"""How much memory practising takes: the most that a process ever held, size by size.

    python benchmarks/memory.py [--preset 1m 3m 10m] [--tokens 8192] [--turns 24]

Every size in a process of its own: prompts are read and answers sampled side by side as in a
rollout, then one GRPO update goes through the model in passes of so many tokens, with AdamW.
SmolLM2 is measured by `tests/own_venv/smollm2_step.py --rank 0` (all weights) and `--rank 8`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource

import numpy as np
import torch
from update import ACTION, VOCABULARY, episode

from dreamgym.models.decode import Decoder, Query
from dreamgym.models.tiny import make_tiny
from dreamgym.train.algorithms import Grpo
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.tokens import TokenGroup
from dreamgym.train.update import Learner, UpdatePlan

MEMBERS = 8


def measure(preset: str, tokens: int, turns: int) -> None:
    """Practise once, and print what it took."""
    torch.set_num_threads(1)
    bare = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rng = np.random.default_rng(0)
    model = make_tiny(preset, VOCABULARY, seed=0)
    members = [episode(rng, turns, choices=0, window=-1) for _ in range(MEMBERS)]
    while sum(len(one.sequences[0].ids) for one in members) < tokens:
        members += [episode(rng, turns, choices=0, window=-1) for _ in range(MEMBERS)]
    prompts = [one.sequences[0].ids for one in members]
    Decoder(model).generate([Query(ids, max_new=ACTION) for ids in prompts])
    played = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    groups = [
        TokenGroup(str(n), tuple(members[n : n + MEMBERS])) for n in range(0, len(members), MEMBERS)
    ]
    learner = Learner(model, UpdatePlan(learning_rate=1e-5, tokens_per_pass=tokens))
    learner.improve(Grpo().credit(groups), PolicyObjective(), step=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    weights = sum(weight.numel() for weight in model.parameters()) / 1e6
    cells = (preset, f"{weights:.1f}", f"{bare:.0f}", f"{played:.0f}", f"{peak:.0f}")
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure size by size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", nargs="+", default=["1m", "3m", "10m"])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--turns", type=int, default=24)
    options = parser.parse_args()
    print("| size | million weights | bare, MB | after a rollout, MB | after an update, MB |")
    print("|---|---|---|---|---|", flush=True)
    for preset in options.preset:
        job = multiprocessing.get_context("spawn").Process(
            target=measure, args=(preset, options.tokens, options.turns)
        )
        job.start()
        job.join()
        if job.exitcode:
            raise SystemExit(job.exitcode)


if __name__ == "__main__":
    main()
