"""Laying out episodes: a split without tasks is named, with what to do."""

import asyncio

import pytest

from dreamgym import build
from dreamgym.errors import ConfigError


class Empty:
    """A folder of games without its test part."""

    spec = "alfworld/official?path=/data"

    async def tasks(self, split):
        return ()


def test_an_empty_split_is_named():
    with pytest.raises(ConfigError, match=r"official\?path=/data has none in its test split"):
        asyncio.run(
            build.make_slots(
                Empty(), split="test", episodes=1, policy=lambda n: None, max_steps=1, seed=0
            )
        )
