"""What every algorithm promises, whatever its baseline: one suite over all of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from dreamgym.train.algorithms import Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.tokens import TokenEpisode, TokenGroup, Weaver
from dreamgym.types import SampledTokens

ALGORITHMS = {
    "grpo": Grpo(),
    "grpo without std": Grpo(scale=False),
    "grpo with penalty": Grpo(invalid_penalty=0.1),
    "grpo with turn penalty": Grpo(invalid_penalty=0.1, penalise="turn"),
    "rloo": Rloo(),
    "gigpo": Gigpo(),
    "ppo": Ppo(),
    "ppo without whitening": Ppo(whiten=False, gamma=0.9, token_lam=0.9),
}
FAILED = TokenEpisode((), (), failed=True)


@pytest.fixture(params=ALGORITHMS.values(), ids=ALGORITHMS.keys())
def algorithm(request):
    return request.param


def episode(seed: int) -> TokenEpisode:
    """Make a random episode of one to four turns."""
    rng = np.random.default_rng(seed)
    weaver, prompt = Weaver(), ()
    turns = int(rng.integers(1, 5))
    for _ in range(turns):
        prompt = (*prompt, 1)
        said = tuple(map(int, rng.integers(2, 9, size=rng.integers(1, 4))))
        weaver.add(prompt, SampledTokens(said, (-1.0,) * len(said)))
        prompt += said
    return TokenEpisode(
        sequences=weaver.sequences(),
        rewards=tuple(map(float, rng.integers(0, 2, size=turns))),
        refused=tuple(map(bool, rng.integers(0, 2, size=turns))),
        states=tuple(f"room {n}" for n in rng.integers(0, 3, size=turns)),
    )


def groups(count: int = 4, members: int = 5) -> list[TokenGroup]:
    return [
        TokenGroup(str(n), tuple(episode(100 * n + m) for m in range(members)))
        for n in range(count)
    ]


def values(of: list[TokenGroup]) -> list[list[np.ndarray]]:
    """Make up a critic that says the same about the same episode."""
    return [
        [
            np.sin(np.arange(len(member.token_turns) + 1) + len(member.rewards))
            for member in g.episodes
        ]
        for g in of
    ]


def credit(algorithm, of):
    return algorithm.credit(of, values(of) if algorithm.needs_values else None)


def same(one, other) -> bool:
    pairs = zip(one.episodes, other.episodes, strict=True)
    return all(
        a.episode == b.episode and np.allclose(a.advantages, b.advantages, atol=1e-9)
        for a, b in pairs
    )


def test_every_action_token_gets_a_finite_advantage(algorithm):
    found = credit(algorithm, groups())
    assert found.episodes
    for one in found.episodes:
        assert one.advantages.shape == one.episode.token_turns.shape
        assert np.isfinite(one.advantages).all()
        assert (one.returns is not None) == (one.values is not None) == algorithm.needs_values
    assert any(one.advantages.any() for one in found.episodes)


def test_failed_members_change_nothing_but_their_own_count(algorithm):
    before = groups()
    after = [replace(g, episodes=(FAILED, *g.episodes, FAILED)) for g in before]
    clean, soiled = credit(algorithm, before), credit(algorithm, after)
    assert same(clean, soiled)
    changed = {name for name, value in soiled.metrics.items() if clean.metrics.get(name) != value}
    assert changed == {"credit/failed_episodes"}
    assert soiled.metrics["credit/failed_episodes"] == 8


def test_a_group_of_failures_trains_nothing(algorithm):
    found = credit(algorithm, [TokenGroup("task", (FAILED, FAILED))])
    assert found.episodes == ()
    assert credit(algorithm, []).episodes == ()


def test_the_order_of_members_and_groups_does_not_matter(algorithm):
    before = groups()
    after = [replace(g, episodes=g.episodes[::-1]) for g in before][::-1]
    found, turned = credit(algorithm, before), credit(algorithm, after)
    assert same(found, replace(turned, episodes=turned.episodes[::-1]))


def test_the_same_groups_get_the_same_credit(algorithm):
    assert same(credit(algorithm, groups()), credit(algorithm, groups()))


def test_what_the_tokens_are_does_not_matter_only_whose_they_are(algorithm):
    """Observation tokens, more of them or fewer, change no advantage."""

    def longer(member: TokenEpisode) -> TokenEpisode:
        sequences = tuple(
            replace(s, ids=(7, 7, *s.ids), turns=(-1, -1, *s.turns)) for s in member.sequences
        )
        return replace(member, sequences=sequences)

    before = groups()
    after = [replace(g, episodes=tuple(map(longer, g.episodes))) for g in before]
    found, padded = credit(algorithm, before), credit(algorithm, after)
    for one, other in zip(found.episodes, padded.episodes, strict=True):
        assert np.allclose(one.advantages, other.advantages)


@pytest.mark.parametrize("name", ["grpo", "grpo without std", "rloo"])
def test_a_constant_reward_for_all_members_changes_nothing(name):
    def richer(member: TokenEpisode) -> TokenEpisode:
        return replace(member, rewards=(member.rewards[0] + 3, *member.rewards[1:]))

    before = groups()
    after = [replace(g, episodes=tuple(map(richer, g.episodes))) for g in before]
    found, shifted = credit(ALGORITHMS[name], before), credit(ALGORITHMS[name], after)
    for one, other in zip(found.episodes, shifted.episodes, strict=True):
        assert np.allclose(one.advantages, other.advantages, atol=1e-5)


def test_judging_needs_no_torch():
    """Credit is arithmetic on plain values: it can be computed where nothing is trained."""
    code = "import dreamgym.train.algorithms, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
