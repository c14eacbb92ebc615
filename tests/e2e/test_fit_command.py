"""`dreamgym fit` from the shell: what it leaves, and that a killed run ends with the same bits."""

import json
import shutil
import signal
import time

import pytest

from dreamgym.experience.card import load_card

FEW = (
    "fit", "--store", "data", "--steps", "4", "--set", "fit.eval_every=2",
    "--set", "fit.tokens_per_step=256", "--set", "fit.threads=1", "--set", "fit.held_out_share=0.1",
)  # fmt: skip


def test_a_fit_leaves_a_dream(small_dream):
    folder = small_dream / "dream"
    result = json.loads((folder / "result.json").read_text())
    assert result["env"] == load_card(folder).env
    assert result["real_transitions"]["online"] == 0
    assert result["real_transitions"]["offline"] > 250
    assert result["padding"] < 0.1
    assert [set(point["spans"]) for point in result["held_out"]][-1] == {
        "reasoning", "state", "flags",
    }  # fmt: skip
    assert result["held_out"][-1]["loss"] < result["held_out"][0]["loss"]
    assert (folder / "model/model.safetensors").is_file()
    assert load_card(folder).store == str(small_dream / "data/experience.sqlite")


def test_what_cannot_be_fitted_says_why_and_leaves_nothing(inside):
    done = inside("fit", "--store", "nowhere", "--out", "run", check=False)
    assert done.returncode == 2
    assert "give --store" in done.stderr
    assert not (inside.folder / "run").exists()


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(shell, inside, small_dream):
    shutil.copytree(small_dream / "data", shell.folder / "data")
    shell(*FEW, "--out", "whole")
    process = shell(*FEW, "--out", "killed", start=True)
    checkpoints = shell.folder / "killed/checkpoints"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        if list(checkpoints.glob("*.json")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (shell.folder / "killed/dream.json").exists()
    other = inside(*FEW, "--out", "killed", "--resume", "--seed", "1", check=False)
    assert "seed = 1 (was seed = 0)" in other.stderr
    shell(*FEW, "--out", "killed", "--resume")
    for name in ("model/model.safetensors", "dream.json"):
        whole = (shell.folder / "whole" / name).read_bytes()
        assert (shell.folder / "killed" / name).read_bytes() == whole, name
    runs = [json.loads((shell.folder / n / "result.json").read_text()) for n in ("whole", "killed")]
    assert runs[0]["held_out"] == runs[1]["held_out"]
    assert runs[0]["best_step"] == runs[1]["best_step"]
