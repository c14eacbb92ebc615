"""The cache of compiled games: on disk, shared by every process, filled by `generate.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dreamgym.envs.textworld.settings import GENERATOR_VERSION, Recipe
from dreamgym.errors import EnvError, MissingDependency
from dreamgym.extras import install_command
from dreamgym.files import cache_dir


def textworld_version() -> str:
    """Return TextWorld's version. Raises `MissingDependency` where it is not installed."""
    try:
        return version("textworld")
    except PackageNotFoundError as error:
        raise MissingDependency(
            f"TextWorld is not installed: {install_command('textworld')} (it compiles C code)"
        ) from error


def games_dir() -> Path:
    """Return the folder of compiled games; another TextWorld or generator may make other games."""
    return cache_dir(f"textworld/{textworld_version()}-{GENERATOR_VERSION}")


def ensure_game(recipe: Recipe) -> Path:
    """Return the folder of a recipe's game, compiling it first if need be (a few seconds)."""
    ensure_games([recipe])
    return games_dir() / recipe.name


def ensure_games(recipes: Iterable[Recipe]) -> int:
    """Compile the games that are not there yet, all in one process; return how many there were."""
    folder = games_dir()
    missing = [recipe for recipe in recipes if not (folder / recipe.name).exists()]
    if not missing:
        return 0
    request = [
        {"kind": one.kind, "generation": one.generation, "split": one.split, "seed": one.seed}
        for one in missing
    ]
    done = subprocess.run(
        [sys.executable, "-m", "dreamgym.envs.textworld.generate", str(folder)],
        input=json.dumps(request).encode(),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        first = f"{missing[0].kind} seed {missing[0].seed}"
        raise EnvError(
            f"TextWorld could not make {len(missing)} game(s) starting with {first}: "
            f"exit status {done.returncode}: {' / '.join(reason) or 'no message'}"
        )
    return len(missing)
