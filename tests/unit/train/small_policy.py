"""A very small policy and a task for it: say the word that is shown, turn after turn."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from dreamgym.models.decode import Decoder, Query
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.train.tokens import Ids, TokenEpisode, TokenGroup, Weaver
from dreamgym.types import SampledTokens, derive_seed

ASK, WORDS, VOCABULARY = 1, range(2, 8), 10
"""Tokens: one that asks, those that may be shown and said, and a few that mean nothing."""
TURNS = 2


def small_llama(
    seed: int = 0, *, vocab_size: int = VOCABULARY, spread: float = 0.2, positions: int = 64
) -> Llama:
    """Make a model of a few thousand weights."""
    shape = LlamaShape(vocab_size, hidden=32, layers=1, heads=2, inner=64, positions=positions)
    model = Llama(shape)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, spread, generator=generator)
    return model.eval()


def tasks(count: int, seed: int) -> list[Ids]:
    """Make tasks: the words to be shown."""
    rng = random.Random(seed)
    return [tuple(rng.choice(WORDS) for _ in range(TURNS)) for _ in range(count)]


def play(model: Llama, asked: Sequence[Ids], *, members: int, seed: int) -> list[TokenGroup]:
    """Play every task `members` times: right words earn a share of 1, strange ones are refused."""
    decoder = Decoder(model, memory_mb=0, steady=False)
    slots = [(task, member) for task in range(len(asked)) for member in range(members)]
    weavers = [Weaver() for _ in slots]
    prompts: list[Ids] = [() for _ in slots]
    said: list[list[int]] = [[] for _ in slots]
    for turn in range(TURNS):
        prompts = [
            (*prompt, ASK, asked[task][turn])
            for prompt, (task, _) in zip(prompts, slots, strict=True)
        ]
        queries = [
            Query(prompt, 1, temperature=1.0, seed=derive_seed(seed, task, member, turn))
            for prompt, (task, member) in zip(prompts, slots, strict=True)
        ]
        for number, answer in enumerate(decoder.generate(queries)):
            weavers[number].add(prompts[number], SampledTokens(answer.ids, answer.logprobs))
            said[number] += answer.ids
            prompts[number] += answer.ids
    episodes = [
        _episode(weaver, asked[task], words)
        for weaver, (task, _), words in zip(weavers, slots, said, strict=True)
    ]
    return [
        TokenGroup(str(task), tuple(episodes[task * members : (task + 1) * members]))
        for task in range(len(asked))
    ]


def _episode(weaver: Weaver, shown: Ids, said: Sequence[int]) -> TokenEpisode:
    right = [word == wanted for word, wanted in zip(said, shown, strict=True)]
    return TokenEpisode(
        sequences=weaver.sequences(),
        rewards=tuple(hit / TURNS for hit in right),
        refused=tuple(word not in WORDS for word in said),
        states=tuple(f"shown {word}" for word in shown),
        success=all(right),
    )


def demonstrate(asked: Sequence[Ids]) -> list[TokenEpisode]:
    """Make episodes that say the right words, without having sampled them."""
    found = []
    for shown in asked:
        weaver, prompt = Weaver(), ()
        for word in shown:
            prompt = (*prompt, ASK, word)
            weaver.add(prompt, SampledTokens((word,), (0.0,)))
            prompt = (*prompt, word)
        episode = TokenEpisode(
            weaver.sequences(), (1 / TURNS,) * TURNS, success=True, sampled=False
        )
        found.append(episode)
    return found


def mean_reward(groups: Sequence[TokenGroup]) -> float:
    """Return what an episode earns on average."""
    earned = [sum(episode.rewards) for group in groups for episode in group.episodes]
    return sum(earned) / len(earned)
