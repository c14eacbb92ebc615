"""The packages of the extra `train`, asked for by name: a missing one says how to get it.

Every file of this package that computes takes torch from here, so that `import dreamgym.models`
costs nothing and the first thing that is *used* without torch says what to install.
"""

from __future__ import annotations

import importlib
from typing import Any

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command


def load(module: str, *, extra: str = "train", fix: str | None = None) -> Any:
    """Import an optional module, or say which command installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        command = fix or install_command(extra)
        raise MissingDependency(f"{module} cannot be imported ({error}): {command}") from error


try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    raise MissingDependency(
        f"local models need torch ({error}): {install_command('train')}"
    ) from error

__all__ = ["functional", "load", "nn", "torch"]
