"""`dreamgym train --algo grpo`: practise for real and in a dream, be killed, go on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dreamgym.llm import ChaosServer

DREAMGYM = Path(sys.executable).with_name("dreamgym")
CORRIDOR = "py/coin_corridor:make_engine"
pytestmark = pytest.mark.slow

QUICK = (
    "--set", "rl.groups=4", "--set", "rl.group_size=4", "--set", "rl.max_steps=6",
    "--set", "rl.eval_episodes=6", "--set", "rl.eval_every=2", "--set", "rl.threads=1",
    "--set", "rl.learning_rate=0.001", "--set", "env.workers=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(small_start, tmp_path_factory):
    """A folder of one's own with a small dream and a policy that was cloned a little."""
    folder = tmp_path_factory.mktemp("reinforce")
    shutil.copytree(small_start, folder, dirs_exist_ok=True)
    return folder


def command(folder, *words, check=True):
    done = subprocess.run(
        [str(DREAMGYM), *words], cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr + done.stdout
    return done


def train(algo, world, steps, out):
    return (
        "train", "--algo", algo, "--world", world, "--from", "start", "--steps", str(steps),
        "--out", out, *QUICK,
    )  # fmt: skip


def result(folder, run):
    return json.loads((folder / run / "result.json").read_text())


def test_a_policy_practises_for_real(place):
    told = command(place, *train("grpo", "real", 3, "real"))
    found = result(place, "real")
    assert found["real_transitions"]["online"] > 0
    assert found["real_transitions"]["evaluation"] > 0
    assert found["dream_transitions"] == 0
    assert [look["step"] for look in found["looks"]] == [0, 2, 3]
    assert "practised on" in told.stdout
    rows = [json.loads(line) for line in (place / "real/metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert rows[-1]["real/steps_online"] == found["real_transitions"]["online"]
    judged = command(
        place, "eval", "--env", CORRIDOR, "--policy", "real", "--split", "dev", "--episodes", "4",
        "--out", "judged", "--set", "eval.overlap=false",
    )  # fmt: skip
    assert "of 4" in judged.stdout
    assert (place / "real/best/policy.json").is_file()


def test_practice_in_a_dream_that_was_killed_goes_on_to_the_same_weights(place):
    """The hardest case: the dream's memory grows on the way. Without, see rounds and curriculum."""
    how = ("--gate", "off", "--set", "rl.enrich=true")
    command(place, *train("ppo", "dream", 4, "whole"), *how)
    found = result(place, "whole")
    assert found["real_transitions"]["online"] == 0
    assert found["real_transitions"]["offline"] > 0
    assert found["dream_transitions"] > 0
    again = [*train("ppo", "dream", 4, "killed"), *how]
    began = subprocess.Popen(
        [str(DREAMGYM), *again], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    checkpoints = place / "killed/checkpoints"
    while began.poll() is None and not list(checkpoints.glob("step-*2.json")):
        time.sleep(0.02)
    began.send_signal(signal.SIGKILL)
    began.communicate()
    assert not (place / "killed/result.json").exists()
    command(place, *again, "--resume")
    resumed = result(place, "killed")
    for name in ("looks", "best_step", "real_transitions", "dream_transitions"):
        assert resumed[name] == found[name], name
    weights = [
        (place / run / "policy/model.safetensors").read_bytes() for run in ("whole", "killed")
    ]
    assert weights[0] == weights[1]
    assert (place / "killed/memory.sqlite").stat().st_size > 0


def steward(prompt):
    """A model of one's own: whatever is done, all stays as it is, but for what is asked for."""
    won = prompt.rpartition("Action: ")[2].startswith("take")
    return (
        "<think>it is done</think><edit></edit>\n"
        f"Refused: False\nDone: {won}\nSuccess: {won}\nReward: {int(won)}"
    )


def test_a_server_can_be_practised_in(place):
    """Nothing is fitted: a server dreams, and remembers with what is on record."""
    with ChaosServer(steward) as server:
        words = (
            *train("grpo", "llm", 2, "served"), "--store", "data", "--set", "rl.eval_every=0",
            "--set", f"llm.url={server.base_url}", "--set", "llm.model=steward",
        )  # fmt: skip
        refused = command(place, *words, check=False)
        assert refused.returncode and "may one train in llm?" in refused.stderr
        command(place, *words, "--gate", "off")
        assert server.counts["requests"] > 0
    found = result(place, "served")
    assert found["world"] == "llm"
    assert found["dream_transitions"] > 0 == found["real_transitions"]["online"]
    assert found["llm"]["llm/calls"] > 0
