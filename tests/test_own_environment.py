"""`docs/own_environment.md` promises whole environments in 40 lines: they are run and checked."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dreamgym.envs.check import check_env

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "02_own_environment.py"
CABINET, LOCK = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "own_environment.md").read_text(), flags=re.DOTALL
)


@pytest.mark.parametrize(
    ("name", "code", "spec"),
    [
        ("cabinet", CABINET, "py/cabinet:make_engine"),
        ("lock", LOCK, "gym/Lock-v0?import=lock"),
    ],
)
def test_the_recipe_is_short_and_whole(
    name: str, code: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    findings = asyncio.run(check_env(spec))
    assert [finding for finding in findings if finding.passed is False] == []
    played = {finding.name for finding in findings if finding.passed}
    assert {"the expert wins", "nonsense is refused", "episodes replay"} <= played


def test_the_example_is_the_recipe() -> None:
    assert EXAMPLE.read_text().startswith(CABINET)


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    assert "FAILED" not in done.stdout
    assert done.stdout.endswith("won\n")
    assert done.stderr == ""
