"""How fast a small model from scratch learns to look things up in its context and copy them.

    python benchmarks/copying.py [--preset 1m] [--tokens 250000] [--plain] [--seed 0]

Five short pages with random names, then six questions: a name, and the page under that name to be
written out word by word. Names mean something new in every sequence, so nothing can be learnt by
heart. "Page exact" is the share of held-out pages whose every token is guessed right. `--plain`
begins with random weights only, without the circuit of `dreamgym.models.start`.
"""

from __future__ import annotations

import argparse
import random
import time

import torch

from dreamgym.models.llama import Llama
from dreamgym.models.samples import Sample
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import HeldOut, SftPlan, SftProgress
from dreamgym.models.tiny import make_tiny

NAMES, QUESTIONS = 200, 6
WAYS, ASK, END, COIN, BOX, NEXT = (2, 3, 4, 5), 6, 7, 8, 9, 10
FIRST_NAME = 11
VOCABULARY = FIRST_NAME + NAMES


def look_up_task(rng: random.Random) -> Sample:
    """Make one sequence: pages, then questions about them."""
    rooms = rng.sample(range(FIRST_NAME, VOCABULARY), 5)
    pages = []
    for room in rooms:
        things = [thing for thing in (COIN, BOX) if rng.random() < 0.3]
        exits = sorted(rng.sample(WAYS, rng.randint(1, 3)))
        pages.append(
            [room, *things, *(token for way in exits for token in (way, rng.choice(rooms)))]
        )
    ids = [token for page in pages for token in (*page, NEXT)]
    spans = [0] * len(ids)
    for number in range(1, QUESTIONS + 1):
        page = rng.choice(pages)
        ids += [ASK, page[0], ASK, *page, END]
        spans += [0, 0, 0, *[number] * (len(page) + 1)]
    return Sample(tuple(ids), tuple(spans))


def tasks(count: int, seed: int) -> list[Sample]:
    """Make many sequences."""
    rng = random.Random(seed)
    return [look_up_task(rng) for _ in range(count)]


def page_exact(point: HeldOut) -> float:
    """Return the share of pages without a wrong token."""
    return sum(span.exact for span in point.spans.values()) / len(point.spans)


def learn(
    model: Llama, *, tokens: int, seed: int = 0, rate: float = 3e-3
) -> list[tuple[int, float]]:
    """Train on ever new sequences; return (tokens seen, page exact) along the way."""
    per_step = 2400
    steps = tokens // per_step
    plan = SftPlan(
        spans={f"page {number}": 1.0 for number in range(1, QUESTIONS + 1)},
        steps=steps,
        tokens_per_step=per_step,
        learning_rate=rate,
        eval_every=max(1, steps // 6),
        seed=seed,
    )
    curve: list[tuple[int, float]] = []

    def note(progress: SftProgress) -> None:
        if progress.held_out is not None:
            curve.append((progress.step * per_step, page_exact(progress.held_out)))

    fit(
        model,
        lambda epoch: tasks(1000, seed * 1000 + epoch + 1),
        plan=plan,
        held_out=tasks(60, -1),
        on_progress=note,
    )
    return curve


def main() -> None:
    """Run one setting and print its curve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="1m")
    parser.add_argument("--tokens", type=int, default=250_000)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=3e-3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = make_tiny(
        options.preset, VOCABULARY, seed=options.seed, positions=512, copying=not options.plain
    )
    start = time.process_time()
    curve = learn(model, tokens=options.tokens, seed=options.seed, rate=options.rate)
    spent = time.process_time() - start
    kind = "plain" if options.plain else "copying"
    name = f"{options.preset} {kind} seed {options.seed} rate {options.rate}"
    points = "  ".join(f"{tokens // 1000}k {exact:.2f}" for tokens, exact in curve)
    print(f"{name}: {points}  ({spent:.0f} s CPU)")


if __name__ == "__main__":
    main()
