"""A real language-model server for the tests of this folder, started once."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("serve_smollm2.py")
CANNOT_INSTALL = 3


@pytest.fixture(scope="session")
def base_url():
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--seconds", "1200"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = process.stdout.readline().strip()
        if not url:
            words = process.communicate()[1]
            if process.returncode == CANNOT_INSTALL:
                pytest.skip(f"the wheels cannot be had here: {words[-200:]}")
            raise RuntimeError(words)
        assert url.startswith("http://127.0.0.1:")
        yield url
        process.stdin.close()
        assert process.wait(20) == 0, "it ends when its input does"
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
