"""Scores of candidates over a shared prompt are those of each candidate alone."""

from __future__ import annotations

import random

import pytest
import torch

from dreamgym.errors import ConfigError
from dreamgym.models.decode import Decoder
from dreamgym.models.llama import Llama
from dreamgym.models.scoring import Choice


def random_choices(count: int) -> list[Choice]:
    rng = random.Random(2)

    def some(most: int, least: int = 1) -> tuple[int, ...]:
        return tuple(rng.randrange(97) for _ in range(rng.randint(least, most)))

    choices = [Choice(some(60), tuple(some(8, 0) for _ in range(n % 7))) for n in range(count)]
    return [*choices, Choice(choices[3].ids, choices[5].candidates)]


@pytest.mark.parametrize("name", ["llama", "grouped_llama"])
@pytest.mark.parametrize("chunk_tokens", [16, 4096])
def test_scores_are_those_of_whole_passes(
    name: str, chunk_tokens: int, request: pytest.FixtureRequest
) -> None:
    model: Llama = request.getfixturevalue(name)
    choices = random_choices(14)
    decoder = Decoder(model, chunk_tokens=chunk_tokens, max_rows=10)
    for _ in range(2):
        found = decoder.score(choices)
        for choice, scores in zip(choices, found, strict=True):
            assert [len(score) for score in scores] == [len(ids) for ids in choice.candidates]
            for ids, score in zip(choice.candidates, scores, strict=True):
                with torch.no_grad():
                    logits = model(torch.tensor([[*choice.ids, *ids]]))[0]
                logprobs = torch.log_softmax(logits, dim=-1)
                start = len(choice.ids) - 1
                right = [logprobs[start + n, token].item() for n, token in enumerate(ids)]
                assert score == pytest.approx(right, abs=1e-4)


def test_all_first_tokens_together_are_certain(llama: Llama) -> None:
    (scores,) = Decoder(llama).score([Choice((1, 2, 3), tuple((n,) for n in range(97)))])
    assert torch.tensor(scores).exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_a_prompt_is_read_once_for_all_candidates(llama: Llama) -> None:
    decoder = Decoder(llama, memory_mb=0)
    decoder.score([Choice(tuple(range(50)), tuple((n, n + 1) for n in range(20)))])
    assert decoder.read_tokens == 50


def test_candidates_without_room_are_refused(llama: Llama) -> None:
    with pytest.raises(ConfigError, match="are more than the 256"):
        Decoder(llama).score([Choice((1,) * 250, ((1,) * 7,))])


@pytest.mark.parametrize("steady", [True, False])
def test_equal_prompts_may_have_candidates_of_their_own(llama: Llama, steady: bool) -> None:
    decoder, ids = Decoder(llama, steady=steady), tuple(range(30))
    asked = [Choice(ids, ((1, 2), (3,))), Choice(ids, ()), Choice(ids, ((3,), (), (4, 5, 6)))]
    found = decoder.score(asked)
    assert decoder.read_tokens == 30
    assert [[len(one) for one in each] for each in found] == [[2, 1], [], [1, 0, 3]]
    for choice, scores in zip(asked, found, strict=True):
        (alone,) = Decoder(llama, steady=steady).score([choice])
        assert [list(one) for one in alone] == [pytest.approx(one, abs=1e-5) for one in scores]


def test_a_choice_is_read_in_one_pass_with_what_is_new(llama: Llama) -> None:
    decoder, ids = Decoder(llama), tuple(range(30))
    decoder.score([Choice(ids, ((1, 2), (3, 4, 5)))])
    decoder.score([Choice((*ids, 3, 4, 5, 9), ((1, 2),))])
    assert decoder.read_tokens == 30 + 4, "the prompt is held; candidates are not"
