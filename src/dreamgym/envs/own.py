"""The family `py`: a user's own environment, from a Python module and with no packaging at all.

`py/my_module:make_engine?size=5` imports `my_module` (also from the current folder) and calls
`make_engine(spec)`, which returns an `Engine`. `docs/own_environment.md` shows a whole one.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from dreamgym.envs.spec import EnvSpec
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.protocols import Engine


def make_engine(spec: EnvSpec) -> Engine:
    """Import the module that the spec names and let its function make the engine."""
    module_name, _, function_name = spec.name.partition(":")
    if not module_name or not function_name:
        raise ConfigError(f"'{spec}': write py/module:function, such as py/my_game:make_engine")
    module = import_module(module_name)
    factory: Callable[[EnvSpec], object] | None = getattr(module, function_name, None)
    if factory is None:
        known = [name for name in vars(module) if callable(getattr(module, name))]
        hint = did_you_mean(function_name, known)
        raise ConfigError(f"'{spec}': {module_name} has no '{function_name}'.{hint}")
    engine = factory(spec)
    if not isinstance(engine, Engine):
        wanted = "version, mapper, tasks, open, entities, close"
        kind = type(engine).__name__
        raise ConfigError(f"'{spec}': {function_name} made a {kind}, which lacks one of {wanted}")
    return engine


def import_module(name: str) -> object:
    """Import a user's module; the current folder counts, wherever the program lies."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # The module is there; something that it imports is not.
        hint = f"no module '{name}' in {os.getcwd()} or among the installed ones"
        raise ConfigError(f"{hint}; run from the folder that holds it") from error
