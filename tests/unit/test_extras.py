import json
import shlex
import shutil
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from dreamgym import extras
from dreamgym.extras import install_command


@pytest.fixture
def origin(monkeypatch):
    """Say where this copy was installed from, as pip notes it; None where from a registry."""

    class Installed(Distribution):
        noted = None

        def read_text(self, filename):
            assert filename == "direct_url.json"
            return self.noted

        def locate_file(self, path):
            return Path(path)

    def note(value):
        Installed.noted = None if value is None else json.dumps(value)

    monkeypatch.setattr(extras, "distribution", lambda name: Installed())
    monkeypatch.setattr(shutil, "which", lambda name: str(Path(sys.executable).parent / name))
    return note


def test_a_released_copy_takes_its_extras_from_the_registry(origin):
    origin(None)
    assert install_command("twx") == "python -m pip install 'dreamgym[twx]'"


def test_a_copy_that_runs_in_its_folder_takes_them_from_there(origin):
    origin({"url": "file:///home/me/my%20dream", "dir_info": {"editable": True}})
    assert install_command("twx") == "python -m pip install -e '/home/me/my dream[twx]'"


def test_a_copy_made_from_a_folder_is_made_from_it_again(origin):
    origin({"url": "file:///src/dreamgym", "dir_info": {}})
    assert install_command("lora") == "python -m pip install '/src/dreamgym[lora]'"


def test_a_folder_of_any_name_can_be_copied_into_a_shell(origin):
    origin({"url": "file:///o'neil/dream", "dir_info": {"editable": True}})
    assert shlex.split(install_command("twx"))[-1] == "/o'neil/dream[twx]"


def test_a_copy_from_a_repository_is_like_a_released_one(origin):
    origin({"url": "https://example.org/dreamgym.git", "vcs_info": {"vcs": "git"}})
    assert install_command("twx") == "python -m pip install 'dreamgym[twx]'"


def test_sources_that_were_never_installed_have_no_folder(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", missing)
    assert install_command("twx").endswith("pip install 'dreamgym[twx]'")


@pytest.mark.parametrize("first", ["/usr/bin/python", None])
def test_another_python_on_the_path_does_not_get_the_extras(origin, monkeypatch, first):
    origin(None)
    monkeypatch.setattr(sys, "executable", "/my venv/bin/python")
    monkeypatch.setattr(shutil, "which", lambda name: first)
    assert install_command("twx") == "'/my venv/bin/python' -m pip install 'dreamgym[twx]'"
