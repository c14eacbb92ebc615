"""Versions: what is installed, and nothing that is not."""

import platform

from dreamgym import __version__
from dreamgym.runs.versions import installed_versions


def test_our_own_version_and_pythons_are_known():
    found = installed_versions()
    assert found["python"] == platform.python_version()
    assert found["dreamgym"] == __version__
    assert all(found.values())
