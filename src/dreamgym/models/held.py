"""Rows of keys and values that stay where they are between calls, for those who go on.

An episode's next prompt begins with its last one and what was answered: whoever asks like that
finds the row that holds it, and nothing is copied or read twice. The row used longest ago goes
first. What a row holds is the same to the last bit however it came there (see `quick.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from dreamgym.models.cache import CacheShape, KVCache, zeros
from dreamgym.models.company import whole_steps
from dreamgym.models.requirement import torch

Ids = tuple[int, ...]
LOOKED_AT = 4
"""Last tokens by which a row is found; the others are compared then."""
SPARE_BYTES = 512 * 2**20
"""Up to here there is room to spare: for twice as many rows as a batch takes, since askers may come
in two halves, and for twice as many columns. Memory is taken only where something is written."""
LEAST_ROWS, LEAST_COLUMNS = 128, 512


class HeldRows:
    """A store of rows, each free, in use, or holding a sequence."""

    def __init__(self, shape: CacheShape) -> None:
        """Begin without any row."""
        self._shape = shape
        self.forget()

    def forget(self) -> None:
        """Let go of everything, also of the memory: what is left there may not be NaN."""
        self._store = zeros(*self._size(0, 0))
        self._ids: dict[int, Ids] = {}
        """What the rows hold, used longest ago first."""
        self._takes = 0
        self._taken: dict[int, int] = {}
        """When rows were taken last."""
        self._sizes: Counter[int] = Counter()
        self._ends: defaultdict[tuple[int, Ids], list[int]] = defaultdict(list)

    def find(self, ids: Ids) -> int | None:
        """Return the row that holds most of the beginning of a sequence, and nothing else."""
        best, most = None, 0
        for size in self._sizes:
            if most < size <= len(ids):
                for row in self._ends.get(_end(ids, size), ()):
                    if self._ids[row] == ids[:size]:
                        best, most = row, size
                        break
        return best

    def take(self, sequences: Sequence[Ids], *, columns: int) -> KVCache:
        """Return a row for each sequence, with room for so many tokens, in use until `hold`.

        Lengths say how much of its sequence a row holds; the last token is always left out, since
        someone wants to know what follows it. Rows that were taken before and never held are free.
        """
        self._make_room(len(sequences), columns)
        places: list[int | None] = []
        lengths: list[int] = []
        for ids in sequences:
            row = self.find(ids)
            places.append(row)
            lengths.append(0 if row is None else min(len(self._lose(row)), len(ids) - 1))
        spare = self._spare({row for row in places if row is not None})
        rows = [next(spare) if row is None else row for row in places]
        self._takes += 1
        self._taken.update(dict.fromkeys(rows, self._takes))
        return KVCache(self._store, torch.tensor(lengths), places=torch.tensor(rows))

    def _spare(self, used: set[int]) -> Iterator[int]:
        """Yield rows to be used anew: forsaken ones, then free ones, then those used longest ago.

        Whoever was here when the oldest of those `used` now was, and is not here again, has ended.
        Rows of the living then stay close together, and little memory is touched.
        """
        free = sorted(set(range(self._store.shape[2])) - used - set(self._ids))
        oldest = min((self._taken[row] for row in used), default=0)
        for row in sorted(row for row in self._ids if self._taken[row] <= oldest):
            self._lose(row)
            yield row
        yield from free
        for row in list(self._ids):
            self._lose(row)
            yield row

    def _lose(self, row: int) -> Ids:
        ids = self._ids.pop(row)
        end = _end(ids, len(ids))
        self._ends[end].remove(row)
        self._sizes[len(ids)] -= 1
        if not self._sizes[len(ids)]:
            del self._sizes[len(ids)]
        if not self._ends[end]:
            del self._ends[end]
        return ids

    def _make_room(self, rows: int, columns: int) -> None:
        """See to it that there are so many rows of so many columns, and more if that is cheap."""
        _, _, now_rows, now_columns, _, _ = self._store.shape
        if rows <= now_rows and columns <= now_columns:
            return
        wishes = (
            (max(now_rows, LEAST_ROWS, 2 * rows), max(now_columns, LEAST_COLUMNS, 2 * columns)),
            (max(now_rows, 2 * rows), max(now_columns, columns * 3 // 2)),
            (max(now_rows, rows), max(now_columns, columns)),
        )
        bytes_each = self._shape.bytes_per_token
        cheap = (wish for wish in wishes if wish[0] * wish[1] * bytes_each <= SPARE_BYTES)
        many, wide = next(cheap, (rows, columns))
        wide = whole_steps(wide)
        store = zeros(*self._size(many, wide))
        for row, ids in list(self._ids.items()):
            if row < many and len(ids) <= wide:
                store[:, :, row, : len(ids)] = self._store[:, :, row, : len(ids)]
            else:
                self._lose(row)
        self._store = store

    def _size(self, rows: int, columns: int) -> tuple[int, ...]:
        shape = self._shape
        return (shape.layers, 2, rows, columns, shape.heads, shape.head_dim)

    def hold(self, cache: KVCache, sequences: Sequence[Ids]) -> None:
        """Let rows that were taken hold these sequences from now on."""
        if cache.store is not self._store:
            return  # all was forgotten meanwhile
        for row, ids in zip(cache.at.tolist(), sequences, strict=True):
            self._ids[row] = ids
            self._sizes[len(ids)] += 1
            self._ends[_end(ids, len(ids))].append(row)


def _end(ids: Ids, size: int) -> tuple[int, Ids]:
    return size, ids[max(0, size - LOOKED_AT) : size]
