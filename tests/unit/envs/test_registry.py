"""Families: those that ship, and those that a package announces."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dreamgym.envs.registry import FAMILIES, families, make_engine
from dreamgym.envs.world import open_world
from dreamgym.errors import ConfigError
from dreamgym.types import Split


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package on the path that announces the family `ledger`."""
    info = tmp_path / "ledger_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dreamgym.envs]\nledger = misbehaving:make_engine\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_brings_a_family_and_workers_know_it() -> None:
    assert families() == FAMILIES | {"ledger": "misbehaving:make_engine"}

    async def look() -> str:
        async with open_world("ledger/any", workers=1) as world:
            return (await world.tasks(Split.TRAIN))[0].env

    assert asyncio.run(look()) == "ledger/any"


def test_an_unknown_family_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"unknown environment family 'twy'. Did you mean 'twx'"):
        make_engine("twy/coin")
