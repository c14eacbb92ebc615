"""Virtual environments in the cache folder, for what cannot be installed beside us."""

from __future__ import annotations

import fcntl
import importlib.util
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CANNOT_INSTALL = 3
"""The exit status of a script when its packages cannot be had."""


def ready_venv(name: str, installs: Sequence[Sequence[str]], *, see_ours: bool = False) -> Path:
    """Make a virtual environment unless it is there; returns its interpreter.

    Args:
        name: its folder.
        installs: arguments of `pip install`, one call each.
        see_ours: let it import what is installed beside DreamGym, such as torch.
    """
    import dreamgym
    from dreamgym.files import cache_dir

    folder = cache_dir("venvs") / name
    stamp, python = folder / "wheels.txt", folder / "bin" / "python"
    wanted = f"{sys.version_info[:2]} {installs} {see_ours and sys.prefix} 2"
    with (folder.parent / f"{name}.lock").open("w") as lock:
        # Two test processes may come here at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == wanted:
            return python
        shutil.rmtree(folder, ignore_errors=True)
        # Our own pip can install there: a copy of it would take longer than most of the wheels.
        ours = importlib.util.find_spec("pip") is not None
        make = [sys.executable, "-m", "venv", *(["--without-pip"] if ours else []), folder]
        subprocess.run(make, check=True, stdout=sys.stderr)
        if see_ours:
            (packages,) = folder.glob("lib/python*/site-packages")
            # An editable install is a file that only its own environment follows: name its folder.
            source = str(Path(dreamgym.__file__).parents[1])
            paths = dict.fromkeys([*site.getsitepackages(), source])
            (packages / "ours.pth").write_text("\n".join(paths) + "\n")
        pip = [sys.executable, "-m", "pip", "--python", python] if ours else [python, "-m", "pip"]
        # Little of it is ever imported, so it is not compiled before.
        quick = ["install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        for arguments in installs:
            subprocess.run([*pip, *quick, *arguments], check=True, stdout=sys.stderr, timeout=600)
        stamp.write_text(wanted)
    return python
