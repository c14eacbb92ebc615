"""A training run in processes that are killed: started by `test_models_sft_resume.py`.

    python killed_fit.py FOLDER

Torch is loaded once; every training run is a fork of this process, so that each can die by SIGKILL
at a point of its own. Prints one JSON line per scenario.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch  # noqa: F401 - loaded here once, not in every fork
import torch
import torch._dynamo  # the optimiser loads it
from echo_task import echo

from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan, SftProgress

PLAN = SftPlan(
    spans={"echo": 1.0, "end": 0.5},
    steps=24,
    tokens_per_step=200,
    eval_every=6,
    checkpoint_every=4,
    learning_rate=1e-2,
    warmup_steps=5,
)


def train(folder: Path | None, on_progress: Callable[[SftProgress], None] | None) -> str:
    """Train (or go on); return a digest of everything that must not depend on interruptions."""
    torch.set_num_threads(1)
    model = Llama(LlamaShape(60, hidden=32, layers=2, heads=2, inner=48, positions=32))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2, generator=generator)
    result = fit(
        model,
        lambda epoch: echo(60, seed=epoch),  # new samples every epoch, about four batches
        plan=PLAN,
        held_out=echo(10, seed=99),
        folder=folder,
        on_progress=on_progress,
    )
    found = hashlib.blake2b(repr(replace(result, seconds=0.0)).encode())
    for name, weight in model.named_parameters():
        found.update(name.encode() + weight.detach().numpy().tobytes())
    return found.hexdigest()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run(folder: Path | None, prepare: Callable[[], Any]) -> tuple[str, int]:
    """Train in a fork; return its digest ('' if it died) and the last step that it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        on_progress = prepare()
        last = [0]

        def report(progress: SftProgress) -> None:
            last[0] = progress.step
            os.write(writing, b"s%d\n" % progress.step)
            if on_progress is not None:
                on_progress(progress)

        os.write(writing, train(folder, report).encode() + b"\n")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = lines.read().split()
    _, status = os.waitpid(child, 0)
    steps = [int(line[1:]) for line in said if line.startswith("s")]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return "", max(steps, default=0)
    return said[-1], max(steps, default=0)


def killed_at_step(step: int) -> Callable[[], Any]:
    return lambda: lambda progress: die() if progress.step == step else None


def killed_at_file(number: int, *, after: bool) -> Callable[[], Any]:
    """Die just before, or just after, the n-th file takes its place."""

    def prepare() -> None:
        real, count = os.replace, [0]

        def replace_or_die(source: str, target: Path) -> None:
            count[0] += 1
            if count[0] == number and not after:
                die()
            real(source, target)
            if count[0] == number:
                die()

        os.replace = replace_or_die

    return prepare


def main(base: Path) -> None:
    scenarios: dict[str, list[Callable[[], Any]]] = {
        "never": [],
        **{f"step {step}": [killed_at_step(step)] for step in (1, 4, 7, 12, 23, 24)},
        "before tensors": [killed_at_file(3, after=False)],
        "between tensors and manifest": [killed_at_file(3, after=True)],
        "after manifest": [killed_at_file(4, after=True)],
        "again and again": [killed_at_step(5), killed_at_file(1, after=True), killed_at_step(9)],
    }
    print(json.dumps({"name": "without checkpoints", "digest": run(None, lambda: None)[0]}))
    for name, kills in scenarios.items():
        folder = base / name.replace(" ", "-")
        deaths = [run(folder, kill) for kill in kills]
        assert all(digest == "" for digest, _ in deaths), f"{name}: it did not die"
        digest, _ = run(folder, lambda: None)
        print(json.dumps({"name": name, "digest": digest, "died_at": [s for _, s in deaths]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
