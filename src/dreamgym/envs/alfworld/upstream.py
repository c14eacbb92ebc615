"""The door to ALFWorld's own packages: imported here, on first use, and nowhere else.

ALFWorld is three packages: `alfworld` (domain, grammar, names, handcoded expert), `textworld` (text
from PDDL) and `fast_downward` (states and plans). Importing them has side effects, undone here.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command
from dreamgym.files import cache_dir


@dataclass(frozen=True, slots=True)
class Upstream:
    """What we use of ALFWorld, untyped as it comes."""

    version: str
    domain: str
    """The PDDL of what can be done in a house (`alfred.pddl`)."""
    grammar: str
    """The words for it (`alfred.twl2`), with `UNKNOWN GOAL` where a game has its goal."""
    textgen: Any
    """The module that turns grammar and state to text."""
    logic: Any
    """The module of `GameLogic` and `PddlState`."""
    rule: Any
    signature: Any
    placeholder: Any
    variable: Any
    entity_info: Any
    demangler: Any
    downward: Any
    """The package `fast_downward`."""
    interned: dict[Any, Any]
    """Every fact that TextWorld has ever made, of all games: it never lets go of one itself."""
    goals: Mapping[str, Any]
    """Task type -> PDDL of the goal and its wordings."""
    holds: Mapping[str, frozenset[str]]
    """Receptacle type -> the object types that fit in or on it."""
    affords: Mapping[str, frozenset[str]]
    """`Cleanable`, `Heatable`, ... -> object types."""
    openable: frozenset[str]
    movable_receptacles: frozenset[str]


def load_upstream() -> Upstream:
    """Import ALFWorld. Raises `MissingDependency` with the fix where it is not installed."""
    try:
        with _undone_side_effects():
            return _import_all()
    except ImportError as error:
        raise MissingDependency(
            f"ALFWorld is not installed ({error}). "
            f"Fix: {install_command('alfworld')} (compiles C++, takes some minutes)."
        ) from error


def _import_all() -> Upstream:
    downward = importlib.import_module("fast_downward")
    # Its option parser reads sys.argv when it is first imported.
    importlib.import_module("fast_downward.translate.options")
    from alfworld.agents.utils.misc import Demangler
    from alfworld.gen import constants
    from alfworld.gen.goal_library import gdict
    from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH
    from textworld.envs.pddl import logic, textgen
    from textworld.generator.game import EntityInfo
    from textworld.logic import Placeholder, Rule, Signature, Variable

    parts = ("alfworld", "textworld", "fast-downward-textworld")
    return Upstream(
        version=" ".join(f"{part}-{version(part)}" for part in parts),
        domain=Path(ALFRED_PDDL_PATH).read_text(encoding="utf-8"),
        grammar=Path(ALFRED_TWL2_PATH).read_text(encoding="utf-8"),
        textgen=textgen,
        logic=logic,
        rule=Rule,
        signature=Signature,
        placeholder=Placeholder,
        variable=Variable,
        entity_info=EntityInfo,
        demangler=Demangler,
        downward=downward,
        interned=importlib.import_module("mementos.core")._memento_cache,
        goals=gdict,
        holds={kind: frozenset(fits) for kind, fits in constants.VAL_RECEPTACLE_OBJECTS.items()},
        affords={name: frozenset(kinds) for name, kinds in constants.VAL_ACTION_OBJECTS.items()},
        openable=frozenset(constants.OPENABLE_CLASS_LIST),
        movable_receptacles=frozenset(constants.MOVABLE_RECEPTACLES),
    )


@contextmanager
def own_argv() -> Iterator[None]:
    """Give Fast Downward's translator the command line that it writes over, then take it back."""
    saved = sys.argv
    sys.argv = ["translate.py", "domain", "task"]
    try:
        yield
    finally:
        sys.argv = saved


@contextmanager
def _undone_side_effects() -> Iterator[None]:
    """Keep ALFWorld from making a folder in the user's home and from setting a variable."""
    unset = "ALFWORLD_DATA" not in os.environ
    if unset:
        os.environ["ALFWORLD_DATA"] = str(cache_dir("alfworld"))
    try:
        with own_argv():
            yield
    finally:
        if unset:
            os.environ.pop("ALFWORLD_DATA", None)
