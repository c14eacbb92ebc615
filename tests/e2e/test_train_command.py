"""`dreamgym train --algo sft` on a small engine: learn, be killed, go on, be judged."""

import json
import signal
import time

import pytest

pytestmark = pytest.mark.slow

TRAIN = (
    "train", "--algo", "sft", "--store", "experience.sqlite", "--demos", "6", "--steps", "25",
    "--set", "train.tokens_per_step=384", "--set", "train.eval_every=5",
    "--set", "train.threads=1", "--set", "policy.vocabulary=400",
)  # fmt: skip


@pytest.fixture
def recorded(shell, staircase):
    shell("collect", "--env", staircase, "--policy", "expert", "--episodes", "8", "--store",
          "experience.sqlite", "--out", "recorded", "--set", "env.workers=1")  # fmt: skip
    return staircase


def result(shell, run):
    return json.loads((shell.folder / run / "result.json").read_text())


def test_a_policy_is_cloned_killed_resumed_and_judged(shell, recorded):
    shell(*TRAIN, "--out", "whole")
    began = shell(*TRAIN, "--out", "killed", start=True)
    checkpoints = shell.folder / "killed" / "checkpoints"
    while began.poll() is None and not (checkpoints.exists() and any(checkpoints.iterdir())):
        time.sleep(0.02)
    began.send_signal(signal.SIGKILL)
    began.communicate()
    assert not (shell.folder / "killed/result.json").exists(), "it was done before it was killed"
    shell(*TRAIN, "--out", "killed", "--resume")
    assert result(shell, "killed")["held_out"] == result(shell, "whole")["held_out"]
    weights = [(shell.folder / run / "policy" / "model.safetensors").read_bytes()
               for run in ("whole", "killed")]  # fmt: skip
    assert weights[0] == weights[1]
    found = result(shell, "whole")
    assert (found["demonstrations"], found["held_out_demonstrations"]) == (6, 1)
    assert len(set(found["demonstration_ids"])) == 6

    told = shell("eval", "--policy", "whole?temperature=0", "--split", "dev",
                 "--episodes", "10", "--out", "judged", "--set", "eval.overlap=false")  # fmt: skip
    assert "1.00" in told.stdout
    assert result(shell, "judged")["refused_share"] == 0.0
    assert result(shell, "judged")["env"] == recorded, "where it learnt to play"


def test_wrong_wishes_are_told(shell, inside, recorded):
    few = inside("train", "--store", "experience.sqlite", "--demos", "9", check=False)
    assert few.returncode == 2
    assert "9 demonstrations by 'expert' are wanted, 8 tasks" in few.stderr
    assert not (shell.folder / "runs").exists() or not list((shell.folder / "runs").iterdir())
    for words, said in (
        (("--algo", "sfx"), "Did you mean 'sft'?"),
        (("--model", "2m"), "neither one of 1m"),
        (("--set", "policy.format=verse"), "Known: auto, chat, compact"),
    ):
        wrong = inside("train", "--store", "experience.sqlite", "--demos", "2", *words, check=False)
        assert wrong.returncode == 2, wrong.stdout
        assert said in " ".join(wrong.stderr.split())
