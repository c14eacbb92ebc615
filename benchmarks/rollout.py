"""How fast a policy plays, as a ratio to decoding alone.

    dreamgym train --algo sft --store data --out warm
    python benchmarks/rollout.py warm [--choose known] [--episodes 64] [--turns 15] [--repeats 3]

Episodes of the real environment are played side by side, four in each place one after the other,
by a policy that speaks or, as policies learn, chooses. "raw" is a bare loop over the same model, on
average as many tokens read and said per turn, but all rows in step, of one length, with nothing to
wait for: no sampling, no texts, no engine, no memory of other episodes. For a policy that chooses,
the bare loop reads what is new in a prompt, then as many tokens of candidates as the policy has to
score per turn. Both in processor time of this process with one thread; engines run in processes of
their own.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from dataclasses import dataclass
from pathlib import Path

import torch
from dream import Clock

from dreamgym import build
from dreamgym.agents.policy import prompt_of
from dreamgym.agents.policy_card import load_policy_card, model_folder
from dreamgym.agents.policy_prompt import with_states
from dreamgym.agents.policy_writers import writer_for
from dreamgym.config import EnvConfig
from dreamgym.models.cache import KVCache
from dreamgym.models.llama import Llama
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.rollout.collect import collect
from dreamgym.types import Trajectory

ROUNDS = 4
"""Episodes that follow one another in each place: opening the first ones is not all there is."""


async def played(policy: str, env: str, *, episodes: int, turns: int) -> tuple[list, float]:
    """Play so many episodes side by side; return them and the processor time that it took."""
    world = build.make_world(EnvConfig(spec=env))
    try:
        slots = await build.make_slots(
            world, split="dev", episodes=ROUNDS * episodes, policy=build.make_policy(policy),
            max_steps=turns, seed=0, repeat=True,
        )  # fmt: skip
        warm = [one async for one in collect(slots[:4], world, concurrency=4)]
        for one in warm:
            assert one.error is None, one.error
        with Clock() as clock:
            found = [one async for one in collect(slots, world, concurrency=episodes)]
    finally:
        await world.close()
    return found, clock.processor


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn takes on average."""

    read: float
    """Tokens that are new in its prompt."""
    said: float
    """Tokens of the answer."""
    scored: float
    """Tokens of candidates that are read to score them; 0 for a policy that speaks."""


def an_average(folder: Path, found: list[Trajectory], *, positions: int) -> Turn:
    """Return what the turns of episodes took on average."""
    card, tokenizer = load_policy_card(folder), load_tokenizer(folder)
    writer = writer_for(card, tokenizer, positions=positions)
    read, said, scored = [], [], []
    for one in found:
        before = 0
        turns = with_states(one.opening, one.steps)
        for number, (state, step) in enumerate(turns):
            prompt = prompt_of(writer, one.task.goal, turns[:number], state)
            tokens = step.action.tokens
            answer = len(tokens.ids) if tokens else 0
            choice = tokens.choice if tokens else None
            read.append(len(prompt) - before)
            said.append(answer)
            scored.append(sum(len(ids) - 1 for ids in choice.candidates) if choice else 0)
            # What was chosen was scored in a place of its own and is read again.
            before = len(prompt) + (0 if choice else answer)
    return Turn(*(statistics.mean(numbers) for numbers in (read, said, scored)))


def raw(model: Llama, turn: Turn, *, rows: int, turns: int) -> float:
    """Return the processor time of a bare loop over so many rows and turns."""
    read, said, scored = (round(number) for number in (turn.read, turn.said, turn.scored))
    ids = torch.randint(0, model.vocab_size, (rows, read + scored))
    cache = KVCache.empty(model.cache_shape, rows, columns=turns * (read + said) + scored)
    with Clock() as clock:
        for _ in range(turns):
            for start in range(0, rows, 32):
                part = cache.part(start, min(rows, start + 32))
                hidden = model.hidden(ids[start : start + 32, :read], cache=part)
                if scored:
                    model.logits(hidden[:, -1])
            cache.lengths += read
            if scored:
                for start in range(0, rows, 32):
                    part = cache.part(start, min(rows, start + 32))
                    model.logits(model.hidden(ids[start : start + 32, read:], cache=part))
                continue
            token = ids[:, -1:]
            for _ in range(max(1, said)):
                hidden = model.hidden(token, cache=cache)
                cache.lengths += 1
                token = model.logits(hidden[:, -1]).argmax(-1, keepdim=True)
    return clock.processor


def main() -> None:
    """Measure in turn, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", type=Path)
    parser.add_argument("--choose", default="nothing", choices=("nothing", "listed", "known"))
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    folder = model_folder(asked.policy) or asked.policy
    env = load_policy_card(folder).env
    model = load_model(folder)
    print("| episodes | turns | read/turn | said | scored | turns/s | raw: turns/s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for _ in range(asked.repeats):
        found, seconds = asyncio.run(
            played(f"{asked.policy}?choose={asked.choose}", env,
                   episodes=asked.episodes, turns=asked.turns)
        )  # fmt: skip
        found = [one for one in found if one.error is None]
        turn = an_average(folder, found, positions=model.positions)
        count = sum(len(one.steps) for one in found)
        turns = round(count / len(found))
        with torch.inference_mode():
            bare = [raw(model, turn, rows=asked.episodes, turns=turns) for _ in range(ROUNDS)]
        ours, theirs = count / seconds, asked.episodes * turns / statistics.mean(bare)
        rows.append(ours / theirs)
        print(f"| {asked.episodes} | {count} | {turn.read:.1f} | {turn.said:.1f} | "
              f"{turn.scored:.1f} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |",
              flush=True)  # fmt: skip
    print(f"\nmedian ratio {statistics.median(rows):.2f}")


if __name__ == "__main__":
    main()
