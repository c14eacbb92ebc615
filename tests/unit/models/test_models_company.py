"""The machine is asked in what portions rows keep their bits, and what it says is true."""

from __future__ import annotations

import pytest
import torch

from dreamgym.models import company
from dreamgym.models.company import accompanied, filled_up, portion, whole_steps


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_in_full_portions_keep_their_bits(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x, weight = torch.randn(100, 128), torch.randn(128, 200)
        right = x @ weight
        for count in range(1, 100):
            assert torch.equal((accompanied(x[:count]) @ weight)[:count], right[:count]), count
    finally:
        torch.set_num_threads(before)


def test_filling_up_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company, "_portion", lambda threads: 4)
    assert [filled_up(count) for count in (1, 4, 5, 16)] == [4, 4, 8, 16]
    rows = torch.arange(10).view(5, 2)
    assert accompanied(rows).tolist() == [*rows.tolist(), *[[8, 9]] * 3]
    whole = rows[:4]
    assert accompanied(whole) is whole, "nothing is copied where nobody is missing"


def test_a_portion_is_the_smallest_that_is_steady() -> None:
    def fours(count: int) -> torch.Tensor:
        return torch.full((count,), float(count % 4))

    assert [company._steady(fours, size) for size in (1, 2, 4, 8)] == [False, False, True, True]
    assert portion() in (1, 2, 4, 8, 16, 32, 64)


def test_columns_that_are_hidden_change_no_bit() -> None:
    q, keys, values = (torch.randn(2, 4, size, 32) for size in (8, 1600, 1600))

    def seen(needed: int, columns: int) -> torch.Tensor:
        mask = torch.zeros(2, 1, 8, columns)
        mask[..., needed:] = -torch.inf
        return torch.nn.functional.scaled_dot_product_attention(
            q, keys[:, :, :columns], values[:, :, :columns], attn_mask=mask
        )

    for needed in range(1, 800, 37):
        alone = seen(needed, whole_steps(needed))
        for longest in range(needed, 1500, 61):
            assert torch.equal(seen(needed, whole_steps(longest)), alone), (needed, longest)


def test_steps_of_columns_are_enough_and_never_fall() -> None:
    sizes = [whole_steps(columns) for columns in range(1200)]
    assert sizes == sorted(sizes)
    assert all(columns <= size <= columns + 512 for columns, size in enumerate(sizes))
    assert sizes[0] == 0 and sizes[512] == 512 and sizes[1024] == 1024
