"""`dreamgym audit` as a user runs it, on a small fitted dream."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DREAMGYM = Path(sys.executable).with_name("dreamgym")

SPEC = "py/coin_corridor:make_engine"
WALKER = '''
"""A policy of one's own that can act in a dream."""
from dreamgym.types import Action

class Walker:
    async def act(self, task, past, now):
        return Action("take coin" if "coin" in now.text else "east")

def make(env, seed):
    return Walker()
'''


@pytest.fixture(scope="module")
def recorded(small_dream, tmp_path_factory):
    """A folder with held-out episodes beside the engine of the small dream."""
    folder = tmp_path_factory.mktemp("audit")
    shutil.copy(small_dream / "coin_corridor.py", folder)
    (folder / "walker.py").write_text(WALKER)
    subprocess.run(
        [DREAMGYM, "collect", "--env", SPEC, "--split", "dev", "--episodes", "10", "--out", "held",
         "--set", "collect.max_steps=8", "--set", "env.workers=1"],
        cwd=folder, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    return folder


@pytest.fixture
def held_out(tmp_path, recorded, small_dream):
    """A dream, and in the folder of the test what to audit it with."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return small_dream / "dream"


def audit(shell, dream, *words, **options):
    return shell(
        "audit", "--world", str(dream), "--data", "held", "--set", "audit.policy_episodes=5",
        "--set", "audit.max_steps=8", "--set", "audit.luck_episodes=2", "--set", "env.workers=1",
        *words, **options,
    )  # fmt: skip


def test_a_dream_is_audited_and_the_verdict_can_be_read(shell, held_out):
    told = audit(shell, held_out, "--policy", "walker:make", "--policy", "random", "--out", "a")
    result = json.loads((shell.folder / "a" / "result.json").read_text())
    page = (shell.folder / "a" / "audit.html").read_text()
    for words in ("One step after a real past", "told again for real", "Policies in both worlds"):
        assert words in told.stdout
    verdict = "open" if result["gate"]["open"] else "shut"
    assert f"The gate is {verdict}" in told.stdout
    assert f"The gate is <b>{verdict}</b>" in page
    assert result["env"] == SPEC
    assert result["one_step"]["steps"] > 0
    assert result["on_policy"][0]["policy"] == "walker:make"
    assert result["closed_loop"]["episodes"] == 15
    assert result["cost"]["real_steps"] > 0


def test_pessimism_is_set_on_the_command_line_and_its_price_is_told(shell, held_out):
    audit(shell, held_out, "--episodes", "3", "--set", f"dream.second={held_out}",
          "--set", "dream.min_confidence=0.9999", "--set", "audit.luck_episodes=0",
          "--out", "a")  # fmt: skip
    result = json.loads((shell.folder / "a" / "result.json").read_text())
    assert result["unknown_why"]["unsure"] > 0
    assert "disagreement" not in result["unknown_why"], "who is asked twice agrees with himself"
    assert result["origins"]["unknown"] == sum(result["unknown_why"].values())
    assert result["one_step"]["unknown"] > 0


def test_strict_ends_with_one_where_the_gate_is_shut(shell, held_out):
    done = audit(shell, held_out, "--episodes", "2", "--strict", "--out", "a", check=False)
    assert done.returncode == 1
    assert "on-policy precision was not measured" in done.stdout


def test_what_is_missing_is_told_in_one_line_and_leaves_nothing(inside, held_out):
    for words, said in (
        (("--split", "test"), "holds no real trajectories"),
        (("--policy", "noisi"), "Did you mean 'noisy'?"),
        (("--data", "nowhere"), "no experience store at nowhere"),
    ):
        done = audit(inside, held_out, *words, "--out", "a", check=False)
        assert done.returncode == 2
        assert said in done.stderr
        assert not (inside.folder / "a").exists()
