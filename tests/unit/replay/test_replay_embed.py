"""The hashing embedder."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.errors import ConfigError
from dreamgym.protocols import Embedder
from dreamgym.replay.embed import HashingEmbedder, unit_rows


def cosine(a: str, b: str) -> float:
    first, second = HashingEmbedder().embed([a, b])
    return float(first @ second)


@given(st.lists(st.text(max_size=40), max_size=5))
def test_rows_have_length_one_and_do_not_depend_on_the_batch(texts):
    embedder: Embedder = HashingEmbedder(64)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
    for text, row in zip(texts, rows, strict=True):
        assert (embedder.embed([text])[0] == row).all()


def test_alike_texts_have_alike_vectors():
    kitchen = "kitchen\ncounter: banana, cookbook; fridge: closed"
    assert cosine(kitchen, kitchen.replace("closed", "open")) > 0.7
    assert abs(cosine(kitchen, "bedroom\nbed: blue shirt; wardrobe: open")) < 0.3
    assert cosine("Take THE coin", "take the coin!") == pytest.approx(1.0)


def test_order_of_words_and_the_first_line_count():
    assert cosine("put apple in box", "put box in apple") < 0.8
    inside = cosine("kitchen\nnorth: hall", "kitchen\nsouth: shed")
    assert inside > cosine("kitchen\nnorth: hall", "shed\nnorth: kitchen")


def test_function_words_say_little():
    assert cosine("the coin", "coin") > cosine("red coin", "coin")


def test_vectors_are_the_same_in_every_process():
    code = (
        "from dreamgym.replay.embed import HashingEmbedder as H;"
        "print(H(32).embed(['kitchen\\ntake the coin'])[0].tobytes().hex())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert (
        outputs.pop().strip()
        == HashingEmbedder(32).embed(["kitchen\ntake the coin"])[0].tobytes().hex()
    )


def test_the_digest_names_the_size():
    assert HashingEmbedder(64).digest != HashingEmbedder(128).digest
    with pytest.raises(ConfigError, match="too few"):
        HashingEmbedder(2)


def test_zero_rows_become_a_fixed_unit_vector():
    assert unit_rows(np.zeros((1, 3))).tolist() == [[1.0, 0.0, 0.0]]
