"""Policy updates against TRL's GRPOTrainer: the same model, episodes and number of epochs.

    python benchmarks/update_vs_trl.py --python VENV/bin/python [--rounds 3] [--epochs 1 2]

VENV is one of its own: `pip install torch==2.13.0 trl==1.16.*`. Both sides are started one after
the other, again and again, with one thread each. A process makes one update to warm up and is then
timed, in processor seconds, over the next: credit, loss, gradients, optimiser, whatever each side
does for it. Rollouts are not in it; TRL gets the episodes through `rollout_func`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT, ACTION, STATE, FEWEST, MOST = 40, 6, 20, 4, 24
GROUPS, MEMBERS, VOCABULARY = 8, 4, 1000
PASS_EPISODES = 8
"""Episodes that TRL puts through the model at once; we go by tokens."""


def main() -> None:
    """Start both sides in turn and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="the interpreter of TRL's environment")
    parser.add_argument("--preset", default="1m")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--side", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure = ours if options.side == "ours" else theirs
        print(json.dumps(measure(options.folder, options.epochs[0])))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, options.preset)
        print("| epochs | tokens | ours: tokens/s | TRL: tokens/s | ratio of medians | rounds |")
        print("|---|---|---|---|---|---|")
        for epochs in options.epochs:
            compare(folder, options.python, epochs, rounds=options.rounds)


def compare(folder: Path, python: str, epochs: int, *, rounds: int) -> None:
    """Measure both sides in turn."""
    speeds: dict[str, list[float]] = {"ours": [], "theirs": []}
    tokens = json.loads((folder / "episodes.json").read_text())["tokens"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    for _ in range(rounds):
        for side, interpreter in (("ours", sys.executable), ("theirs", python)):
            command = [interpreter, __file__, "--python", python, "--side", side]
            command += ["--folder", str(folder), "--epochs", str(epochs)]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment
            )
            told = json.loads(done.stdout.splitlines()[-1])
            assert told["updates"] == epochs, told
            speeds[side].append(epochs * tokens / told["seconds"])
    one, two = (statistics.median(speeds[side]) for side in ("ours", "theirs"))
    ratios = [round(a / b, 2) for a, b in zip(*speeds.values(), strict=True)]
    print(
        f"| {epochs} | {tokens} | {one:.0f} | {two:.0f} | {one / two:.2f} | {ratios} |", flush=True
    )


def prepare(folder: Path, preset: str) -> None:
    """Write a model in Hugging Face format, and episodes of many lengths."""
    import numpy as np

    from dreamgym.models.tiny import make_tiny
    from dreamgym.models.tokenizer import train_word_tokenizer

    rng = np.random.default_rng(0)

    def random_ids(count: int) -> list[int]:
        return list(map(int, rng.integers(2, VOCABULARY, count)))

    make_tiny(preset, VOCABULARY, seed=0).save(folder)
    train_word_tokenizer(["a b c"], special=(), vocab_size=VOCABULARY, min_count=1).save(folder)
    groups = []
    for _ in range(GROUPS):
        prompt = random_ids(PROMPT)
        members = []
        for member in range(MEMBERS):
            ids: list[int] = []
            acted: list[int] = []
            for _ in range(int(rng.integers(FEWEST, MOST + 1))):
                ids += [*random_ids(ACTION), *random_ids(STATE)]
                acted += [1] * ACTION + [0] * STATE
            # The last state of an episode is read by nobody.
            members.append({"ids": ids[:-STATE], "acted": acted[:-STATE], "reward": member % 2})
        groups.append({"prompt": prompt, "members": members})
    every = [PROMPT + len(one["ids"]) for group in groups for one in group["members"]]
    (folder / "episodes.json").write_text(json.dumps({"groups": groups, "tokens": sum(every)}))


def ours(folder: Path, epochs: int) -> dict[str, float]:
    """Update as DreamGym does."""
    import numpy as np
    import torch

    from dreamgym.models.load import load_model
    from dreamgym.train.algorithms import Grpo
    from dreamgym.train.objectives import PolicyObjective
    from dreamgym.train.tokens import READ, TokenEpisode, TokenGroup, TokenSequence
    from dreamgym.train.update import Learner, UpdatePlan

    torch.set_num_threads(1)
    guess = -float(np.log(VOCABULARY))

    def episode(prompt: list[int], one: dict) -> TokenEpisode:
        size, count = ACTION + STATE, sum(one["acted"])
        turns = [n // size if acted else READ for n, acted in enumerate(one["acted"])]
        sequence = TokenSequence(
            (*prompt, *one["ids"]), (*[READ] * PROMPT, *turns), (guess,) * count
        )
        rewards = (0.0,) * (count // ACTION - 1) + (float(one["reward"]),)
        return TokenEpisode((sequence,), rewards)

    groups = [
        TokenGroup(str(n), tuple(episode(group["prompt"], one) for one in group["members"]))
        for n, group in enumerate(json.loads((folder / "episodes.json").read_text())["groups"])
    ]
    learner = Learner(load_model(folder), UpdatePlan(epochs=epochs, learning_rate=1e-5))
    seconds = figures = None
    for step in range(2):
        began = time.process_time()
        figures = learner.improve(Grpo().credit(groups), PolicyObjective(), step=step)
        seconds = time.process_time() - began
    return {"seconds": seconds, "updates": figures["actor/updates"]}


def theirs(folder: Path, epochs: int) -> dict[str, float]:
    """Update as TRL does."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(1)
    groups = json.loads((folder / "episodes.json").read_text())["groups"]
    clock: list[float] = []

    def replay(prompts: list[str], trainer: GRPOTrainer) -> dict:
        seen: dict[str, int] = {}
        columns = {
            "prompt_ids": [],
            "completion_ids": [],
            "logprobs": [],
            "env_mask": [],
            "won": [],
        }
        for prompt in prompts:
            group = groups[int(prompt)]
            one = group["members"][seen.setdefault(prompt, 0)]
            seen[prompt] += 1
            columns["prompt_ids"].append(group["prompt"])
            columns["completion_ids"].append(one["ids"])
            columns["logprobs"].append([0.0] * len(one["ids"]))
            columns["env_mask"].append(one["acted"])
            columns["won"].append(float(one["reward"]))
        return columns

    class Clock(TrainerCallback):
        def on_step_begin(self, args, state, control, **rest) -> None:
            clock.append(time.process_time())

        def on_step_end(self, args, state, control, **rest) -> None:
            clock.append(time.process_time())

    passes = GROUPS * MEMBERS // PASS_EPISODES
    trainer = GRPOTrainer(
        model=str(folder),
        reward_funcs=lambda won, **rest: won,
        rollout_func=replay,
        args=GRPOConfig(
            output_dir=str(folder / "trl"), max_steps=2 * epochs, num_iterations=epochs,
            per_device_train_batch_size=PASS_EPISODES, gradient_accumulation_steps=passes,
            num_generations=MEMBERS, max_completion_length=2048, learning_rate=1e-5,
            bf16=False, use_cpu=True, gradient_checkpointing=False, report_to="none",
            save_strategy="no", logging_steps=1000, disable_tqdm=True, beta=0.0,
        ),
        train_dataset=Dataset.from_dict({"prompt": [str(n) for n in range(GROUPS)]}),
        callbacks=[Clock()],
    )  # fmt: skip
    trainer.train()
    # The callback before a step is called when its batch is there: count from the end before it.
    return {"seconds": clock[-1] - clock[2 * epochs - 1], "updates": len(clock) // 2 - epochs}


if __name__ == "__main__":
    main()
