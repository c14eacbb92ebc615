"""What tests of several kinds share: one small dream, collected and fitted once per test run."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

# By the clock on the wall: on a busy machine a limit per example fails what is right.
hypothesis.settings.register_profile("dreamgym", deadline=None)
hypothesis.settings.load_profile("dreamgym")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in a shell's background. What tests interrupt would inherit it and never stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The command is started hundreds of times: what was compiled once is kept, whatever is set outside.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

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
    with shared_folder(tmp_path_factory, "small-dream") as folder:
        if not (folder / "dream/result.json").exists():
            shutil.copy(Path(__file__).with_name("coin_corridor.py"), folder)
            run_command(
                folder, "collect", "--env", CORRIDOR, "--episodes", "60", "--out", "data",
                "--resume", "--set", "collect.max_steps=10",
            )  # fmt: skip
            run_command(folder, *fit_words("dream"), "--resume")
    return folder


@pytest.fixture(scope="session")
def small_start(small_dream, tmp_path_factory):
    """A copy of the folder of `small_dream`, with `start`: a policy that was cloned a little.

    Nobody changes what is in the folder.
    """
    with shared_folder(tmp_path_factory, "small-start") as folder:
        if not (folder / "start/result.json").exists():
            shutil.copytree(small_dream, folder, dirs_exist_ok=True)
            run_command(
                folder, "train", "--store", "data", "--demos", "8", "--steps", "14", "--resume",
                "--out", "start", "--set", "train.tokens_per_step=384", "--set", "train.threads=1",
                "--set", "train.behaviour=expert", "--set", "policy.vocabulary=400",
            )  # fmt: skip
    return folder


@contextmanager
def shared_folder(tmp_path_factory, name):
    """Hold a folder that all processes of this test run share; one fills it, the others wait."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    base = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (base / name).mkdir(exist_ok=True)
        yield base / name


def fit_words(out, *, steps=40):
    """The command that fits a small dream in seconds, in the folder of `small_dream`."""
    return ("fit", "--store", "data", "--steps", str(steps), "--out", out, *SHORT_FIT)


def run_command(folder, *words):
    """Run `dreamgym ...` in a folder; it has to succeed."""
    done = subprocess.run(
        [str(DREAMGYM), *words], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr + done.stdout
