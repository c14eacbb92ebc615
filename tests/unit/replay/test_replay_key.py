"""The key of a state and an action."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.errors import ConfigError, ReplayError
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.key import KeyEncoder

STATES = ("kitchen\nfridge: closed", "bedroom\nbed; wardrobe: open")
ACTIONS = ("open fridge", "take blue shirt from wardrobe")


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 2.0])
def test_the_cosine_weighs_state_and_action(weight):
    embedder = HashingEmbedder(4096)  # many dimensions: little noise
    encoder = KeyEncoder(embedder, action_weight=weight)
    for states, actions in (
        ([STATES[0]] * 2, ACTIONS),
        (STATES, [ACTIONS[0]] * 2),
        (STATES, ACTIONS),
    ):
        (s1, s2), (a1, a2) = embedder.embed(states), embedder.embed(actions)
        one, two = encoder.encode(states, actions)
        expected = (s1 @ s2 + weight**2 * (a1 @ a2)) / (1 + weight**2)
        assert one @ two == pytest.approx(expected, abs=0.06)


def test_state_and_action_are_not_interchangeable():
    encoder = KeyEncoder(HashingEmbedder())
    there, back = encoder.encode(["open fridge", "kitchen"], ["kitchen", "open fridge"])
    assert there @ back < 0.5


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=6))
def test_a_key_does_not_depend_on_its_company_or_the_memory(pairs):
    encoder = KeyEncoder(HashingEmbedder(32))
    keys = encoder.encode([s for s, _ in pairs], [a for _, a in pairs])
    assert keys.shape == (len(pairs), 32)
    for (state, action), key in zip(pairs, keys, strict=True):
        assert (KeyEncoder(HashingEmbedder(32)).encode([state], [action])[0] == key).all()
        assert (key == key.astype(np.float16)).all()


def test_texts_are_embedded_once():
    class Counting(HashingEmbedder):
        asked = 0

        def embed(self, texts):
            self.asked += len(texts)
            return super().embed(texts)

    embedder = Counting(32)
    encoder = KeyEncoder(embedder)
    encoder.encode(["a", "b", "a"], ["go", "go", "go"])
    encoder.encode(["b"], ["go"])
    assert embedder.asked == 3


def test_the_digest_names_embedder_and_weight():
    digests = {
        KeyEncoder(HashingEmbedder(size), action_weight=weight).digest
        for size in (32, 64)
        for weight in (0.5, 1.0)
    }
    assert len(digests) == 4
    with pytest.raises(ConfigError, match="negative"):
        KeyEncoder(HashingEmbedder(), action_weight=-1.0)


@pytest.mark.parametrize("answer", [np.zeros((1, 3)), np.full((2, 256), np.nan)])
def test_an_embedder_that_answers_nonsense_is_named(answer):
    class Nonsense(HashingEmbedder):
        def embed(self, texts):
            return answer

    with pytest.raises(ReplayError, match=r"embedder hashing.*instead of 2 x 256 finite"):
        KeyEncoder(Nonsense()).encode(["a"], ["b"])


def test_a_broken_embedder_is_named():
    class Broken(HashingEmbedder):
        def embed(self, texts):
            raise ValueError("no power")

    with pytest.raises(ReplayError, match=r"embedder hashing.*no power"):
        KeyEncoder(Broken()).encode(["a"], ["b"])
