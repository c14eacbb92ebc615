"""Every family of environments keeps the same promises: `check_env` over all of them."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from dreamgym.envs.check import check_env

ENVS = Path(__file__).parents[1] / "unit" / "envs"
TEXTWORLD, ALFWORLD = pytest.mark.textworld, pytest.mark.alfworld

SPECS = [
    pytest.param("py/broken_engines:make_engine", "", 3),
    pytest.param("gym/dreamgym-test/Counter-v0?import=text_gyms", "gymnasium", 3),
    pytest.param("twx/cookingworld", "textworld_express", 1),
    pytest.param("twx/twc", "textworld_express", 1),
    pytest.param("twx/coin", "textworld_express", 1),
    pytest.param("twx/mapreader", "textworld_express", 1),
    pytest.param("twx/arithmetic", "textworld_express", 1),
    pytest.param("twx/sorting", "textworld_express", 3),
    pytest.param("twx/simonsays", "textworld_express", 3),
    pytest.param("twx/peckingorder", "textworld_express", 1),
    pytest.param("textworld/coin_collector", "textworld", 1, marks=TEXTWORLD),
    pytest.param("alfworld/generated", "alfworld", 1, marks=ALFWORLD),
]


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "package", "tasks"), SPECS)
def test_an_environment_keeps_its_promises(
    spec: str, package: str, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package and find_spec(package) is None:
        pytest.skip(f"{spec} needs the package {package}, which is not installed here")
    monkeypatch.syspath_prepend(ENVS)
    monkeypatch.syspath_prepend(ENVS / "gym")
    findings = asyncio.run(check_env(spec, tasks=tasks, time_limit=120.0))
    assert [finding for finding in findings if finding.passed is False] == []
    held = {finding.name for finding in findings if finding.passed}
    assert {"episodes replay", "games share no state", "the expert wins"} <= held
