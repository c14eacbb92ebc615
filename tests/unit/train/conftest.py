"""Tests of learning need torch; without it there is nothing to collect here."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_*.py"]


@pytest.fixture(autouse=HAS_TORCH, scope="session")
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
