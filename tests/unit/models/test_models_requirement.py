"""Without torch the package imports, and says what to install when something is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dreamgym.models
from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command


def test_torch_is_here() -> None:
    pytest.importorskip("torch", reason="tests of local models need the extra `train`")


def run(code: str, *blocked: str) -> str:
    """Run code in a process in which some packages cannot be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", block + code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_the_package_brings_nothing_heavy() -> None:
    code = "import dreamgym.models, sys; print('torch' in sys.modules, dir(dreamgym.models)[0])"
    assert run(code) == "False Answer"


@pytest.mark.parametrize(
    "use", ["from dreamgym.models import make_tiny", "import dreamgym.models.sft"]
)
def test_using_something_without_torch_names_the_fix(use: str) -> None:
    code = (
        "import dreamgym.models\n"
        "from dreamgym.errors import MissingDependency\n"
        f"try:\n    {use}\nexcept MissingDependency as error:\n    print(error)"
    )
    assert install_command("train") in run(code, "torch")


def test_the_tokenizer_needs_no_torch() -> None:
    code = (
        "from dreamgym.models import train_word_tokenizer as train\n"
        "print(train(['a coin'] * 2).decode(train(['a coin'] * 2).encode('a coin')))"
    )
    assert run(code, "torch") == "a coin"


def test_other_packages_are_asked_for_by_name() -> None:
    pytest.importorskip("torch")
    from dreamgym.models.requirement import load

    with pytest.raises(MissingDependency, match=r"no_such_thing .*: .*pip install .*\[lora\]'"):
        load("no_such_thing", extra="lora")


def test_every_public_name_is_there() -> None:
    pytest.importorskip("torch")
    for name in dreamgym.models.__all__:
        assert getattr(dreamgym.models, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'make_huge'"):
        _ = dreamgym.models.make_huge
