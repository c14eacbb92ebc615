"""How fast local models decode and train on this machine, as ratios within one run.

    python benchmarks/decode.py [--preset 1m] [--rows 1 16 64 256] [--train 1m 3m 10m]

One thread. Prompts of different lengths, about 150 tokens each, go to `Decoder.generate`, 32 new
tokens per answer. Speeds are new tokens per second of processor time, prompts included.

- "raw" is a bare loop over the same model: prompts of one length, one batch, no sampling, no stops;
- "one by one" is `transformers.generate` for one prompt after another (a few of them are timed);
- "sharing" gives the prompts a common beginning of 100 tokens, "again" asks the same once more;
- "score" compares 20 candidates of 8 tokens after a prompt of 200 with 20 separate passes.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from dreamgym.models.cache import KVCache
from dreamgym.models.decode import Decoder, Query
from dreamgym.models.llama import Llama
from dreamgym.models.losses import predict
from dreamgym.models.samples import Sample, collate
from dreamgym.models.scoring import Choice
from dreamgym.models.tiny import make_tiny

VOCABULARY, PROMPT, NEW = 1024, 150, 32


def cpu_seconds(work: Callable[[], object], *, repeats: int = 3) -> float:
    """Return the least processor time that a piece of work took."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def prompts(rows: int, *, shared: int = 0) -> list[tuple[int, ...]]:
    """Make random prompts of 100 to 200 tokens, the first `shared` of which are the same."""
    rng = random.Random(rows)
    start = tuple(rng.randrange(VOCABULARY) for _ in range(shared))
    lengths = [rng.randint(PROMPT - 50, PROMPT + 50) for _ in range(rows)]
    return [start + tuple(rng.randrange(VOCABULARY) for _ in range(n - shared)) for n in lengths]


@torch.inference_mode()
def raw_loop(model: Llama, rows: int) -> None:
    """Decode one batch of equal lengths as plainly as can be."""
    ids = torch.randint(0, VOCABULARY, (rows, PROMPT))
    cache = KVCache.empty(model.cache_shape, rows, columns=PROMPT + NEW)
    for start in range(0, rows, 32):
        model.hidden(ids[start : start + 32], cache=cache.part(start, min(rows, start + 32)))
    cache.lengths += PROMPT
    token = ids[:, -1:]
    for _ in range(NEW - 1):
        hidden = model.hidden(token, cache=cache)
        cache.lengths += 1
        token = model.logits(hidden[:, -1]).argmax(-1, keepdim=True)


def one_by_one(model: Llama, count: int) -> float:
    """Return the processor time per prompt of `transformers.generate`."""
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        theirs = AutoModelForCausalLM.from_pretrained(folder)
    asked = [torch.tensor([ids]) for ids in prompts(count)]

    def work() -> None:
        for ids in asked:
            theirs.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=NEW,
                min_new_tokens=NEW,
                do_sample=False,
                pad_token_id=0,
            )

    return cpu_seconds(work, repeats=2) / count


def decoding(model: Llama, sizes: list[int]) -> None:
    """Print the table of decoding speeds."""
    single = NEW / one_by_one(model, 4)
    print(f"one by one, transformers.generate: {single:.0f} new tokens/s")
    heads = ("rows", "ours", "raw", "ours/raw", "ours/one", "sharing", "again")
    print("".join(f"{head:>10}" for head in heads))
    for rows in sizes:
        asked = [Query(ids, max_new=NEW) for ids in prompts(rows)]
        alike = [Query(ids, max_new=NEW) for ids in prompts(rows, shared=100)]
        ours = speed(model, asked)
        raw = rows * NEW / cpu_seconds(partial(raw_loop, model, rows))
        cells = (ours, raw, ours / raw, ours / single, speed(model, alike))
        again = speed(model, asked, forget=False)
        print(
            f"{rows:>10}"
            + "".join(f"{cell:>10.{2 if cell < 50 else 0}f}" for cell in (*cells, again))
        )


def speed(model: Llama, asked: list[Query], *, forget: bool = True) -> float:
    """Return new tokens per second of a decoder that has forgotten, or remembers, the prompts."""
    decoder = Decoder(model)
    decoder.generate(asked)

    def work() -> None:
        if forget:
            decoder.forget()
        decoder.generate(asked)

    return len(asked) * NEW / cpu_seconds(work)


def scoring(model: Llama) -> None:
    """Print how much a shared prompt saves when candidates are compared."""
    rng = random.Random(0)
    prompt = tuple(rng.randrange(VOCABULARY) for _ in range(200))
    candidates = tuple(tuple(rng.randrange(VOCABULARY) for _ in range(8)) for _ in range(20))
    whole = torch.tensor([prompt + candidate for candidate in candidates])

    @torch.inference_mode()
    def apart() -> None:
        torch.log_softmax(model(whole), dim=-1)

    naive = cpu_seconds(apart)
    shared = cpu_seconds(lambda: Decoder(model, memory_mb=0).score([Choice(prompt, candidates)]))
    print(
        f"score 20 candidates: {1000 * naive:.0f} ms apart, {1000 * shared:.0f} ms shared", end=""
    )
    print(f" ({naive / shared:.1f} times faster)")


def training(preset: str) -> None:
    """Print how many tokens per second a model learns from, half of them prompt."""
    model = make_tiny(preset, VOCABULARY, seed=0, positions=512)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rng = random.Random(0)
    samples = [
        Sample(tuple(rng.randrange(VOCABULARY) for _ in range(256)), (0,) * 128 + (1,) * 128)
        for _ in range(8)
    ]
    batch = collate(samples)

    def work() -> None:
        optimizer.zero_grad()
        predict(model, batch).losses.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    size = sum(weight.numel() for weight in model.parameters()) / 1e6
    print(
        f"train {preset} ({size:.1f}M parameters): {batch.tokens / cpu_seconds(work):.0f} tokens/s"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="1m")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--train", nargs="*", default=["1m", "3m", "10m"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, torch {torch.__version__}")
    model = make_tiny(options.preset, VOCABULARY, seed=0, positions=512).eval()
    print(f"preset {options.preset}; new tokens per second of processor time")
    decoding(model, options.rows)
    scoring(model)
    for preset in options.train:
        training(preset)


if __name__ == "__main__":
    main()
