"""Which command installs an optional part beside this very copy of DreamGym.

A copy that was installed from a folder gets its extras from that folder: what a registry has under
the name may be another version, or nothing. Nothing is installed here.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """Return the command for an extra of `pyproject.toml`, to be copied as it stands."""
    folder, editable = _origin()
    if folder is None:
        return f"{pip_install()} 'dreamgym[{extra}]'"
    what = shlex.quote(f"{folder}[{extra}]")
    return f"{pip_install()} {'-e ' if editable else ''}{what}"


def pip_install() -> str:
    """Return `python -m pip install` for the Python that runs, also where the path has another."""
    first = shutil.which("python")
    ours = Path(sys.executable)
    # Interpreters of virtual environments are links to one file: their folders tell them apart.
    if first is not None and Path(first).parent == ours.parent:
        return "python -m pip install"
    return f"{shlex.quote(str(ours))} -m pip install"


def _origin() -> tuple[str | None, bool]:
    """Return the folder that this copy was installed from, if any, and whether it runs there."""
    try:
        noted = distribution("dreamgym").read_text("direct_url.json")
    except PackageNotFoundError:
        return None, False
    origin = json.loads(noted or "{}")
    if "dir_info" not in origin:
        return None, False
    folder = url2pathname(urlsplit(origin["url"]).path)
    return folder, bool(origin["dir_info"].get("editable"))
