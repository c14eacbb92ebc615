"""Virtual environments in the cache folder, for what cannot be installed beside us."""

from __future__ import annotations

import fcntl
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
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, stdout=sys.stderr)
        if see_ours:
            (packages,) = folder.glob("lib/python*/site-packages")
            # An editable install is a file that only its own environment follows: name its folder.
            source = str(Path(dreamgym.__file__).parents[1])
            paths = dict.fromkeys([*site.getsitepackages(), source])
            (packages / "ours.pth").write_text("\n".join(paths) + "\n")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for arguments in installs:
            subprocess.run([*pip, *arguments], check=True, stdout=sys.stderr, timeout=600)
        stamp.write_text(wanted)
    return python
