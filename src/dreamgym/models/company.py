"""In what portions work must be done for each row to come out the same in any company.

A processor's library takes other paths for odd rows and for sums of some lengths, and adds up in
another order there. Which ones depends on the processor and on the threads that share the work: on
one make a row is odd only when alone, on another all are that are left over after the last four,
and sums of 193 to 383 are made in two halves. So the machine is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from dreamgym.models.requirement import functional, torch

STEADY = 16
"""Rows for models that are not ours, whose weights lie otherwise."""
MANY = 64
PRODUCTS = ((32, 96), (128, 384), (512, 128))
"""Products to try, [in, out]."""
HEAD_DIMS = (8, 32)
"""Attention to try."""
COLUMN_STEP, COLUMN_BLOCK = 32, 512
"""Attention looks at columns in steps, and at what lies beyond a block by itself."""


def portion() -> int:
    """Return how many rows or queries there must be, or a multiple of it: a power of two."""
    return _portion(torch.get_num_threads())


def filled_up(count: int) -> int:
    """Return a number of rows that is enough, and at least so many."""
    return -(-count // portion()) * portion()


def accompanied(rows: torch.Tensor) -> torch.Tensor:
    """Return rows in company enough: where some are missing, the last of them joins itself."""
    missing = filled_up(len(rows)) - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows


def whole_steps(columns: int) -> int:
    """Return how many columns attention is to look at where so many are needed.

    Those that are not needed are hidden, and sums of what is seen run in the same order whatever
    the longest row beside it is.
    """
    blocks, rest = divmod(columns, COLUMN_BLOCK)
    sizes = _column_sizes(torch.get_num_threads())
    return blocks * COLUMN_BLOCK + next(size for size in sizes if size >= rest)


@cache
def _portion(threads: int) -> int:
    draw = torch.Generator().manual_seed(0)
    tried = [_product(*shape, draw) for shape in PRODUCTS]
    tried += [_attention(head_dim, draw) for head_dim in HEAD_DIMS]
    size = 1
    while size < MANY and not all(_steady(among, size) for among in tried):
        size *= 2
    return size


@cache
def _column_sizes(threads: int) -> tuple[int, ...]:
    """Return sizes, up to a block, of which each shows what it shares with a larger one alike."""
    draw = torch.Generator().manual_seed(0)
    q = torch.randn(1, 2, COLUMN_STEP, max(HEAD_DIMS), generator=draw)
    keys, values = (
        torch.randn(1, 2, COLUMN_BLOCK, max(HEAD_DIMS), generator=draw) for _ in range(2)
    )

    def seen(needed: int, columns: int) -> torch.Tensor:
        mask = torch.zeros(1, 1, COLUMN_STEP, columns)
        mask[..., needed:] = -torch.inf
        return functional.scaled_dot_product_attention(
            q, keys[:, :, :columns], values[:, :, :columns], attn_mask=mask
        )

    found = [0, COLUMN_BLOCK]
    for size in range(COLUMN_STEP, COLUMN_BLOCK, COLUMN_STEP):
        pairs = ((min(size, one), max(size, one)) for one in found if one)
        if all(torch.equal(seen(few, few), seen(few, many)) for few, many in pairs):
            found.append(size)
    return tuple(sorted(found))


def _steady(among: Callable[[int], torch.Tensor], size: int) -> bool:
    right = among(MANY)
    return all(torch.equal(among(n), right[:n]) for n in range(size, MANY, size))


def _product(inner: int, outer: int, draw: torch.Generator) -> Callable[[int], torch.Tensor]:
    x = torch.randn(MANY, inner, generator=draw)
    weight = torch.randn(inner, outer, generator=draw)
    return lambda count: x[:count] @ weight


def _attention(head_dim: int, draw: torch.Generator) -> Callable[[int], torch.Tensor]:
    q, keys, values = (torch.randn(1, 2, MANY, head_dim, generator=draw) for _ in range(3))
    mask = torch.zeros(1, 1, MANY, MANY)

    def among(count: int) -> torch.Tensor:
        seen = functional.scaled_dot_product_attention(
            q[:, :, :count], keys, values, attn_mask=mask[:, :, :count]
        )
        return seen[0].transpose(0, 1)

    return among
