"""How fast a dream steps, as ratios to decoding alone, to `generate` and to the real engine.

    dreamgym collect --env twx/coin --episodes 600 --out data
    dreamgym fit --store data/experience.sqlite --out coin
    python benchmarks/dream.py coin [--episodes 1 16 64 256] [--steps 8] [--repeats 3]

The actions of recorded episodes are played in a fitted dream, so many episodes side by side, with
grounding, ledger and look-ups as `dreamgym` opens it. One thread for torch. "dream/s" and the
ratios are answers of the model per second of processor time of the whole process; steps that a rule
or the transition cache answered are free and do not count; "steps/s" counts them, too. What is on
record of a task is read when its first episode opens, which is no step: "open ms" says what it
takes. With `--alike 8`, eight neighbouring episodes are the same: a group that still goes one way.

- "decoder" is `Decoder.generate` alone on the very same prompts, in batches of as many;
- "raw" is a bare loop over the same model: as many tokens per answer on average, but all prompts of
  one length and all answers of one length, whole batches, no sampling, no stops, no memory;
- "generate" is `transformers.generate` on some of the same prompts, one after the other;
- "real" is the engine, stepped with the same actions; its time is that of Java and of Python.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import torch
from twx_speed import java_seconds

from dreamgym.config import DreamConfig
from dreamgym.dreams import MODEL, Dream, dream_over
from dreamgym.envs.registry import make_engine
from dreamgym.errors import EnvError
from dreamgym.experience.card import DreamCard, load_card
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.cache import KVCache
from dreamgym.models.decode import Answer, Decoder, Query
from dreamgym.models.llama import Llama
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.scoring import Choice, Scores
from dreamgym.types import Source, Split, Trajectory


@dataclass(slots=True)
class Heard:
    """A decoder that writes down what it was asked and what it answered."""

    inner: Decoder
    asked: list[tuple[Query, Answer]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def generate(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer, and take note."""
        answers = self.inner.generate(queries)
        self.asked += zip(queries, answers, strict=True)
        self.batches.append(len(queries))
        return answers

    def score(self, asked: Sequence[Choice]) -> list[Scores]:
        """Compare candidates."""
        return self.inner.score(asked)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the dream."""

    steps: int
    failed: int
    processor: float
    seconds: float
    asked: list[tuple[Query, Answer]]
    batches: int
    opening: float
    """Processor time to read what is on record of a task, once for all its episodes."""

    @property
    def answers(self) -> int:
        """Questions that the model answered."""
        return len(self.asked)


class Clock:
    """Processor and wall time of a block."""

    def __enter__(self) -> Clock:
        """Start."""
        self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.processor = time.process_time() - self._start[0]
        self.seconds = time.perf_counter() - self._start[1]


async def dreamed(
    dream: Dream,
    heard: Heard,
    episodes: Sequence[Trajectory],
    *,
    beside: int,
    steps: int,
    alike: int = 1,
) -> Run:
    """Play recorded actions in the dream, so many episodes side by side, so many steps of each."""
    taken = failed = 0

    async def play(slot: int) -> None:
        nonlocal taken, failed
        left = steps
        for one in islice(episodes, slot // alike, None, max(1, beside // alike)):
            env = await dream.world.open(one.task, without=one.id)
            await env.reset(0)
            for step in one.steps:
                if left == 0:
                    return
                left -= 1
                try:
                    result = await env.step(step.action.text)
                except EnvError:
                    failed += 1
                    break
                taken += 1
                if result.terminated or result.truncated:
                    break

    dream.world.forget()
    heard.inner.forget()
    heard.asked, heard.batches = [], []
    with Clock() as opening:
        for one in episodes[: 2 * beside]:
            env = await dream.world.open(one.task, without=one.id)
            await env.reset(0)
    with Clock() as clock:
        await asyncio.gather(*map(play, range(beside)))
    opened = opening.processor / min(len(episodes), 2 * beside)
    return Run(
        taken, failed, clock.processor, clock.seconds, heard.asked, len(heard.batches), opened
    )


def decoded(model: Llama, run: Run, *, beside: int) -> float:
    """Return the processor time of a decoder alone for the same prompts."""
    decoder = Decoder(model)
    queries = [query for query, _ in run.asked]
    with Clock() as clock:
        for start in range(0, len(queries), beside):
            decoder.generate(queries[start : start + beside])
    return clock.processor


@torch.inference_mode()
def raw(model: Llama, run: Run, *, beside: int, most_batches: int = 3) -> float:
    """Return the processor time of a bare loop for as many tokens, all rows of one length."""
    asked = run.asked
    prompt = round(statistics.mean(len(query.ids) for query, _ in asked))
    new = round(statistics.mean(len(answer.ids) for _, answer in asked))
    batches = min(most_batches, max(1, len(asked) // beside))
    ids = torch.randint(0, model.vocab_size, (beside, prompt))
    with Clock() as clock:
        for _ in range(batches):
            cache = KVCache.empty(model.cache_shape, beside, columns=prompt + new)
            for start in range(0, beside, 32):
                part = cache.part(start, min(beside, start + 32))
                model.hidden(ids[start : start + 32], cache=part)
            cache.lengths += prompt
            token = ids[:, -1:]
            for _ in range(new - 1):
                hidden = model.hidden(token, cache=cache)
                cache.lengths += 1
                token = model.logits(hidden[:, -1]).argmax(-1, keepdim=True)
    return clock.processor * len(asked) / (batches * beside)


def generated(model: Llama, run: Run, *, most: int = 8) -> float:
    """Return the processor time per step of `transformers.generate`, prompt by prompt."""
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        theirs = AutoModelForCausalLM.from_pretrained(folder)
    stride = max(1, len(run.asked) // most)
    some = run.asked[::stride][:most]

    def answer(query: Query, length: int) -> None:
        ids = torch.tensor([query.ids])
        seen = torch.ones_like(ids)
        theirs.generate(
            ids, attention_mask=seen, max_new_tokens=length, do_sample=False, pad_token_id=0
        )

    answer(some[0][0], 4)
    with Clock() as clock:
        for query, reply in some:
            answer(query, len(reply.ids))
    return clock.processor / len(some)


def real(spec: str, episodes: Sequence[Trajectory], *, steps: int) -> tuple[float, float]:
    """Return steps per second of processor time and of wall time of the real engine."""
    engine = make_engine(spec)
    taken, wall = 0, 0.0
    python, java = time.process_time(), java_seconds(engine.pid)
    for one in episodes:
        game = engine.open(one.task)
        game.reset(0)
        began = time.perf_counter()
        for step in one.steps:
            game.step(step.action.text)
            taken += 1
        wall += time.perf_counter() - began
        game.close()
        if taken >= steps:
            break
    busy = time.process_time() - python + java_seconds(engine.pid) - java
    engine.close()
    return taken / busy, taken / wall


def load(folder: Path, store: Path | None) -> tuple[Dream, Heard, Llama]:
    """Open a fitted dream over a decoder that takes notes."""
    card: DreamCard = load_card(folder)
    if store is not None:
        card = replace(card, store=str(store))
    model, words = load_model(folder / MODEL), load_tokenizer(folder / MODEL)
    heard = Heard(Decoder(model))
    llm = LocalLLM(model, words, decoder=heard)  # type: ignore[arg-type]
    return dream_over(llm, card, config=DreamConfig()), heard, model


def row(model: Llama, run: Run, *, beside: int) -> tuple[float, float, float]:
    """Return answers per second of the dream, of a decoder alone and of a bare loop."""
    alone, bare = decoded(model, run, beside=beside), raw(model, run, beside=beside)
    return run.answers / run.processor, run.answers / alone, run.answers / bare


async def measure(options: argparse.Namespace) -> None:
    """Print the table."""
    dream, heard, model = load(options.dream, options.store)
    env = dream.card.env
    recorded = dream.store.trajectories(source=Source.REAL, split=Split.TRAIN, env=env)
    episodes = list(islice(recorded, options.recorded))
    first = await dreamed(dream, heard, episodes, beside=16, steps=4)
    asked = first.asked
    prompt = statistics.mean(len(query.ids) for query, _ in asked)
    new = statistics.mean(len(answer.ids) for _, answer in asked)
    print(f"{env}: {prompt:.0f} prompt tokens, {new:.0f} new ones per answer")
    engine, wall = real(env, episodes, steps=options.real_steps)
    print(f"real engine: {engine:.0f} steps per second of processor time, {wall:.0f} of wall time")
    single = 1 / generated(model, first)
    print(f"generate, one by one: {single:.1f} answers/s", flush=True)
    heads = ("episodes", "answers", "failed", "batches", "dream/s", "steps/s", "/decoder", "/raw")
    print("".join(f"{head:>10}" for head in (*heads, "/generate", "/real", "open ms")))
    for beside in options.episodes:
        for _ in range(options.repeats):
            steps = max(options.steps, 24 // beside)
            run = await dreamed(
                dream, heard, episodes, beside=beside, steps=steps, alike=options.alike
            )
            speed, alone, bare = row(model, run, beside=beside)
            counts = (beside, run.answers, run.failed, run.batches)
            ratios = (run.steps / run.processor, speed / alone, speed / bare, speed / single)
            cells = "".join(f"{value:>10.{2 if value < 10 else 1}f}" for value in (speed, *ratios))
            ends = f"{speed / engine:>10.3f}{1000 * run.opening:>10.1f}"
            print(f"{''.join(f'{n:>10}' for n in counts)}{cells}{ends}", flush=True)
    await dream.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dream", type=Path)
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--recorded", type=int, default=600)
    parser.add_argument("--alike", type=int, default=1)
    parser.add_argument("--real-steps", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, torch {torch.__version__}")
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
