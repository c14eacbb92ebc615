"""Killed with SIGKILL and started again, training ends with the same bits."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from echo_task import echo
from random_models import random_llama

from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan, SftProgress

SCRIPT = Path(__file__).with_name("killed_fit.py")
PLAN = SftPlan(
    spans={"echo": 1.0, "end": 0.5},
    steps=40,
    tokens_per_step=300,
    eval_every=10,
    checkpoint_every=5,
    learning_rate=1e-2,
    warmup_steps=5,
)


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    digests = {run["name"]: run["digest"] for run in runs}
    assert len(digests) == 12
    assert set(digests.values()) == {digests["without checkpoints"]}, digests
    died_at = {run["name"]: run.get("died_at") for run in runs}
    assert died_at["step 7"] == [7]
    assert died_at["between tensors and manifest"] == [7], "the checkpoint of step 8 was under way"


class Interrupted(Exception):
    pass


def test_a_truncated_checkpoint_is_noticed_and_the_one_before_it_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def stop_at_18(progress: SftProgress) -> None:
        if progress.step == 18:
            raise Interrupted

    samples, held_out = echo(100), echo(10, 1)
    whole = random_llama()
    fit(whole, samples, plan=PLAN, held_out=held_out)
    with pytest.raises(Interrupted):
        fit(
            random_llama(), samples, plan=PLAN, held_out=held_out, folder=tmp_path,
            on_progress=stop_at_18,
        )  # fmt: skip
    newest = tmp_path / "step-000000015.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1000])
    model, steps = random_llama(), []
    with caplog.at_level(logging.WARNING):
        fit(
            model, samples, plan=PLAN, held_out=held_out, folder=tmp_path,
            on_progress=lambda progress: steps.append(progress.step),
        )  # fmt: skip
    assert "step-000000015.json is damaged" in caplog.text
    assert steps == list(range(11, 41)), "it went on from step 10"
    for one, other in zip(model.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)
