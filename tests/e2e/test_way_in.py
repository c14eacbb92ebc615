"""The way in, before anything else is loaded."""

import os
import subprocess
import sys

import pytest

LOOK = """
import os, sys
assert "numpy" not in sys.modules
from dreamgym.__main__ import main
assert "numpy" not in sys.modules
sys.argv = ["dreamgym", "--version"]
try:
    main()
finally:
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def said(*words, **settings):
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, *words],
        env={**env, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(("settings", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_numpy_has_one_thread_unless_told_otherwise(settings, threads):
    assert said("-c", LOOK, **settings)[-1] == threads


def test_the_package_is_a_command():
    assert said("-m", "dreamgym", "--version")[0] == "dreamgym"
