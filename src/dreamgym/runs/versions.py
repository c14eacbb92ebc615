"""What is installed here, for records that say what made them."""

from __future__ import annotations

import platform
from importlib import metadata

NAMED = ("dreamgym", "torch", "numpy", "textworld-express", "textworld", "alfworld")
"""Packages on which results depend."""


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in NAMED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
