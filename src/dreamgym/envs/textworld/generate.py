"""Generates and compiles games, in a process of its own.

Run by `games.py`, which passes the cache folder as argument and recipes as JSON on standard input.
Apart from the caller because TextWorld's generator seeds global state, prints, and follows the
order of sets: here the hash seed is fixed, so a recipe gives the same bytes in every process.

A game is built in `NAME.part` under a lock and then renamed: whatever kills this process leaves
either a whole game or a part folder that the next one clears away.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dreamgym.envs.textworld.settings import GAME_FILE, WALKTHROUGH_FILE, Recipe
from dreamgym.types import Split, derive_seed

ATTEMPTS = 20
"""Some seeds have no game, such as a maze too small for its quest; then the next attempt counts."""

_SPLIT_WORDS = {Split.TRAIN: "train", Split.DEV: "valid", Split.TEST: "test"}


def main() -> None:
    """Build every game that standard input asks for."""
    cache = Path(sys.argv[1])
    for entry in json.load(sys.stdin):
        recipe = Recipe(
            entry["kind"],
            tuple((key, value) for key, value in entry["generation"]),
            Split(entry["split"]),
            entry["seed"],
        )
        build(recipe, cache)


def build(recipe: Recipe, cache: Path) -> None:
    """Make the game of a recipe unless it is there already."""
    ready, part = cache / recipe.name, cache / f"{recipe.name}.part"
    with _locked(cache / f"{recipe.name}.lock"):
        if ready.exists():
            return
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        # The compiler's own scratch files go into the part folder, to be cleared away with it.
        tempfile.tempdir = str(part)
        game = _compile(recipe, part / GAME_FILE)
        (part / WALKTHROUGH_FILE).write_text(json.dumps(_walkthrough(game)))
        (part / GAME_FILE).with_suffix(".ni").unlink()
        os.rename(part, ready)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the system lets go of even when this process is killed."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(recipe: Recipe, file: Path) -> Any:
    import textworld
    from textworld.generator import QuestGenerationError, compile_game

    for attempt in range(ATTEMPTS):
        options = textworld.GameOptions()
        seed = derive_seed("textworld", recipe.seed, attempt) % 2**32 if attempt else recipe.seed
        options.seeds = seed
        options.path = str(file)
        textworld.g_rng.set_seed(seed)
        try:
            game = _make(recipe, options)
            break
        except (QuestGenerationError, ValueError, AssertionError) as error:
            if attempt == ATTEMPTS - 1:
                raise RuntimeError(f"no game for {recipe} in {ATTEMPTS} attempts") from error
    compile_game(game, options)
    return game


def _walkthrough(game: Any) -> list[str]:
    """Return the game's own way to win, without opening what is open or asking what states say."""
    from textworld.generator.game import GameProgression
    from textworld.generator.inform7 import Inform7Game

    progress, words = GameProgression(game, track_quests=False), Inform7Game(game)
    useful = []
    for command in game.walkthrough:
        actions = progress.valid_actions
        commands = words.gen_commands_from_actions(actions)
        if command in commands and command not in ("inventory", "look"):
            progress.update(actions[commands.index(command)])
            useful.append(command)
    return useful


def _make(recipe: Recipe, options: Any) -> Any:
    # The challenges register themselves on import, under the names that `tw-make` knows.
    from textworld.challenges import CHALLENGES

    settings: dict[str, Any] = dict(recipe.generation)
    if recipe.kind == "cooking":
        settings |= {"split": _SPLIT_WORDS[recipe.split], "recipe_seed": 0}
    if recipe.kind == "simple":
        settings["test"] = recipe.split is Split.TEST
    _, make, _ = CHALLENGES[f"tw-{recipe.kind}"]
    return make(settings, options)


if __name__ == "__main__":
    main()
