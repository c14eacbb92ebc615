"""The next token: greedy, drawn, cut at top-p; a row's draws are its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dreamgym.models.sampling import Draws, pick

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0])


def draw(uniform: list[float], *, temperature: float = 1.0, top_p: float = 1.0) -> list[int]:
    rows = len(uniform)
    ids, _ = pick(
        LOGITS.expand(rows, -1),
        temperature=torch.full((rows,), temperature),
        top_p=torch.full((rows,), top_p, dtype=torch.float64),
        uniform=torch.tensor(uniform, dtype=torch.float64),
    )
    return ids.tolist()


def test_temperature_zero_takes_the_best() -> None:
    assert draw([0.0, 0.5, 0.999999], temperature=0.0) == [0, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_they_are_likely(temperature: float) -> None:
    levels = (np.arange(10000) + 0.5) / 10000
    share = np.bincount(draw(list(levels), temperature=temperature), minlength=4) / 10000
    likely = torch.softmax(LOGITS / temperature, dim=-1).numpy()
    assert share == pytest.approx(likely, abs=2e-4)


def test_top_p_keeps_the_smallest_sufficient_set() -> None:
    # Probabilities: 0.644, 0.237, 0.087, 0.032.
    levels = list((np.arange(1000) + 0.5) / 1000)
    for top_p, allowed in ((0.5, {0}), (0.65, {0, 1}), (0.95, {0, 1, 2}), (1.0, {0, 1, 2, 3})):
        assert set(draw(levels, top_p=top_p)) == allowed
    share = np.bincount(draw(levels, top_p=0.65)) / 1000
    assert share[0] == pytest.approx(0.644 / 0.881, abs=2e-3)


def test_the_ends_of_the_range_give_tokens() -> None:
    assert draw([0.0, 1.0 - 1e-16]) == [0, 3]
    assert draw([0.0, 1.0 - 1e-16], top_p=0.65) == [0, 1]


def test_logprobs_are_the_models_at_the_rows_temperature() -> None:
    logits = LOGITS.expand(3, -1)
    ids, logprobs = pick(
        logits,
        temperature=torch.tensor([0.0, 1.0, 2.0]),
        top_p=torch.tensor([1.0, 0.7, 1.0], dtype=torch.float64),
        uniform=torch.tensor([0.9, 0.9, 0.9], dtype=torch.float64),
    )
    scales = (1.0, 1.0, 2.0)
    expected = [
        torch.log_softmax(LOGITS / scale, dim=-1)[token].item()
        for token, scale in zip(ids.tolist(), scales, strict=True)
    ]
    assert logprobs.tolist() == pytest.approx(expected)


def test_rows_do_not_change_with_their_company() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20, 50, generator=generator)
    settings = {
        "temperature": torch.tensor([0.0, 0.7, 1.0, 1.3] * 5),
        "top_p": torch.tensor([1.0, 0.9, 1.0, 0.5, 1.0] * 4, dtype=torch.float64),
        "uniform": torch.rand(20, generator=generator, dtype=torch.float64),
    }
    together, _ = pick(logits, **settings)
    for row in range(20):
        alone, _ = pick(logits[[row]], **{name: value[[row]] for name, value in settings.items()})
        assert alone.item() == together[row].item()


def test_the_nth_number_of_a_seed_is_always_the_same() -> None:
    draws = Draws([3, 5])
    later = Draws([5]).at(200, [0]).item()
    assert draws.at(200, [1]).item() == later
    assert draws.at(0, [0, 1]).tolist() == [
        Draws([3]).at(0, [0]).item(),
        Draws([5]).at(0, [0]).item(),
    ]
    assert len({draws.at(step, [row]).item() for step in range(100) for row in (0, 1)}) == 200
