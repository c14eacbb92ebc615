"""Model files that come inside installed packages, found without importing the packages."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command


def package_file(package: str, inside: str, *, extra: str) -> Path:
    """Return the path of a file that a package ships. Raises `MissingDependency` with the fix."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / inside
        if path.is_file():
            return path
    missing = f"{package} holds no {inside}" if spec else f"{package} is not installed"
    raise MissingDependency(f"{missing}: {install_command(extra)}")


def file_digest(path: Path) -> str:
    """Return a short name for a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=6)).hexdigest()
