"""`dreamgym vary` from the shell: a dream that was taught tasks shows some, others say why not."""

import json

import pytest

from dreamgym.experience.card import load_card
from dreamgym.experience.task_prompt import Job


@pytest.mark.slow
def test_a_dream_that_was_taught_shows_its_tasks(shell, small_dream):
    shell("fit", "--store", str(small_dream / "data"), "--steps", "20", "--out", "taught",
          "--set", "fit.task_share=0.3", "--set", "fit.tokens_per_step=768",
          "--set", "fit.eval_every=10", "--set", "fit.threads=1")  # fmt: skip
    assert load_card(shell.folder / "taught").jobs == tuple(Job)
    result = json.loads((shell.folder / "taught/result.json").read_text())
    assert result["task_lessons"] > 100
    assert result["padding"] < 0.1
    assert "task" in result["held_out"][-1]["spans"]
    told = shell("vary", "--world", "taught", "--tasks", "2", "--count", "2").stdout
    assert told.count("Goal: take the coin\n") >= 2
    assert told.count("Other places on record: 2") == 2
    assert "of 4 variations could be read and are no repeats." in told


def test_a_dream_that_was_not_taught_says_so(inside, small_dream):
    done = inside("vary", "--world", str(small_dream / "dream"), check=False)
    assert done.returncode == 2
    assert "was not taught the job 'variation', only step" in done.stderr
    assert "Traceback" not in done.stderr
