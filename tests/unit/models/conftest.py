"""Fixtures for tests of local models. Without torch, only `test_models_requirement.py` is left."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_models_[!r]*.py", "test_models_reading.py"]


@pytest.fixture(autouse=HAS_TORCH, scope="session")
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def llama() -> Any:
    from random_models import random_llama

    return random_llama()


@pytest.fixture(scope="session")
def grouped_llama() -> Any:
    """Four query heads over two heads of keys and values."""
    from random_models import random_llama

    return random_llama(1, kv_heads=2, tied=False)


@pytest.fixture(scope="session")
def words() -> Any:
    from dreamgym.models.tokenizer import train_word_tokenizer

    texts = ["<act>take the coin from the T-shirt (red), then go north.\nYou see: a box."] * 2
    return train_word_tokenizer(texts, special=("<act>", "<obs>"))
