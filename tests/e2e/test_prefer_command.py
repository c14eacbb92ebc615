"""`dreamgym train --algo dpo` on a small engine: learn from won and lost, be killed, go on."""

import json
import signal
import time

import pytest

pytestmark = pytest.mark.slow

PREFER = (
    "train", "--algo", "dpo", "--store", "experience.sqlite", "--from", "start", "--steps", "4",
    "--set", "dpo.pairs_per_step=4", "--set", "dpo.eval_every=2", "--set", "dpo.threads=1",
    "--set", "dpo.held_out_share=0.3",
)  # fmt: skip


def result(shell, run):
    return json.loads((shell.folder / run / "result.json").read_text())


def test_won_is_preferred_to_lost_and_a_killed_run_goes_on(shell, inside, staircase):
    for policy, steps in (("expert", "12"), ("random", "3")):
        shell("collect", "--env", staircase, "--policy", policy, "--episodes", "8", "--out", policy,
              "--store", "experience.sqlite", "--set", f"collect.max_steps={steps}",
              "--set", "env.workers=1")  # fmt: skip
    shell("train", "--store", "experience.sqlite", "--demos", "6", "--steps", "4", "--out", "start",
          "--set", "train.tokens_per_step=384", "--set", "train.threads=1",
          "--set", "policy.vocabulary=400")  # fmt: skip
    began = shell(*PREFER, "--out", "killed", start=True)
    checkpoints = shell.folder / "killed" / "checkpoints"
    while began.poll() is None and not list(checkpoints.glob("step-*.json")):
        time.sleep(0.02)
    began.send_signal(signal.SIGKILL)
    began.communicate()
    assert not (shell.folder / "killed/result.json").exists(), "it was done before it was killed"
    told = shell(*PREFER, "--out", "killed", "--resume")
    assert "pairs" in told.stdout
    shell(*PREFER, "--out", "whole")
    found = result(shell, "whole")
    assert found["held_out"] == result(shell, "killed")["held_out"]
    assert [look["step"] for look in found["held_out"]] == [0, 2, 4]
    assert found["held_out"][-1]["dpo/held_out_margin"] > 0
    assert found["pairs"] + found["held_out_pairs"] == 8
    assert found["real_transitions"] == {"offline": 8 * 5 + 8 * 3, "online": 0}
    weights = [(shell.folder / run / "policy" / "model.safetensors").read_bytes()
               for run in ("whole", "killed")]  # fmt: skip
    assert weights[0] == weights[1]

    bare = inside("train", "--algo", "dpo", "--store", "experience.sqlite", check=False)
    assert bare.returncode == 2
    assert "start from a policy that can speak" in " ".join(bare.stderr.split())
