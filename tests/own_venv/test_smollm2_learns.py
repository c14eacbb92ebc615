"""One real GRPO step with an instruct model of 135 million weights, in the real environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("textworld_express")

pytestmark = [pytest.mark.slow, pytest.mark.own_venv]

SCRIPT = Path(__file__).with_name("smollm2_step.py")
CANNOT_INSTALL = 3


@pytest.mark.parametrize("rank", [0, 8])
def test_smollm2_makes_a_step(rank):
    command = [sys.executable, str(SCRIPT), "--rank", str(rank)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode == CANNOT_INSTALL:
        pytest.skip(f"the wheels cannot be had here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["errors"] == []
    figures = told["figures"]
    assert figures["credit/trained_episodes"] == 2
    assert figures["actor/updates"] == 1
    assert figures["actor/grad_norm"] > 0
    # What the sampler said and what the learner computes are the same.
    assert figures["actor/mismatch_kl"] < 1e-6
    # A conversation of two turns is one sequence, and its beginning is read once for both members.
    assert told["sequences"] == [1, 1]
    assert told["read_tokens"] < sum(told["tokens"])
    assert told["frozen_moved"] == []
    assert told["trained_weights"] == (134_515_008 if rank == 0 else 2_442_240)
    assert ("adapters/adapter_model.safetensors" in told["files"]) == bool(rank)
    assert {"config.json", "model.safetensors", "tokenizer.json", "policy.json"} <= {*told["files"]}
    assert told["apart_when_loaded"] < 1e-2
