"""What tests of several kinds share: one small dream, collected and fitted once per test run."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in a shell's background. What tests interrupt would inherit it and never stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)

DREAMGYM = Path(sys.executable).with_name("dreamgym")
CORRIDOR = "py/coin_corridor:make_engine"
SHORT_FIT = (
    "--set", "fit.eval_every=10", "--set", "fit.tokens_per_step=768", "--set", "fit.threads=1",
)  # fmt: skip


@pytest.fixture(scope="session")
def small_dream(tmp_path_factory):
    """A folder with `data` (60 real episodes), `dream` (fitted on them) and the engine's module.

    The dream is well-formed, not good. Nobody changes what is in the folder.
    """
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    base = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    folder = base / "small-dream"
    with (base / "small-dream.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "dream/result.json").exists():
            folder.mkdir(exist_ok=True)
            shutil.copy(Path(__file__).with_name("coin_corridor.py"), folder)
            _run(
                folder, "collect", "--env", CORRIDOR, "--episodes", "60", "--out", "data",
                "--resume", "--set", "collect.max_steps=10",
            )  # fmt: skip
            _run(folder, *fit_words("dream"), "--resume")
    return folder


def fit_words(out, *, steps=40):
    """The command that fits a small dream in seconds, in the folder of `small_dream`."""
    return ("fit", "--store", "data", "--steps", str(steps), "--out", out, *SHORT_FIT)


def _run(folder, *words):
    done = subprocess.run(
        [str(DREAMGYM), *words], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr + done.stdout
