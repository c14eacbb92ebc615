"""The family `py`: modules of users, and what they get told when one cannot be used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dreamgym.envs.registry import families, make_engine
from dreamgym.errors import ConfigError
from dreamgym.types import Split


def test_an_engine_comes_from_a_module() -> None:
    engine = make_engine("py/misbehaving:make_engine")
    assert engine.version == "ledger 1"
    assert engine.tasks(Split.TEST)[0].env == "py/misbehaving:make_engine"
    assert "py" in families()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("py", "write py/module:function"),
        ("py/misbehaving", "write py/module:function"),
        ("py/:make", "write py/module:function"),
        ("py/no_such_module_here:make", "no module 'no_such_module_here' in /"),
        ("py/misbehaving:make_engin", "has no 'make_engin'. Did you mean 'make_engine'?"),
        ("py/misbehaving:make_nothing", "made a object, which lacks one of version, mapper"),
        ("py/misbehaving:make_engine?stat=well", "unknown parameter 'stat'. Did you mean 'start'"),
    ],
)
def test_what_cannot_be_used_is_explained(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_engine(spec)
    assert message in str(caught.value)


def test_the_current_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_game.py").write_text("from misbehaving import make_engine\n")
    (tmp_path / "my_lame_game.py").write_text("import something_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", os.getcwd())])
    assert make_engine("py/my_own_game:make_engine").version == "ledger 1"
    with pytest.raises(ModuleNotFoundError, match="something_that_is_not_there"):
        make_engine("py/my_lame_game:make_engine")
    monkeypatch.delitem(sys.modules, "my_own_game")
