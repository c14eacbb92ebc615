"""Rows that stay: who goes on finds them, nobody else does."""

from __future__ import annotations

import random

import torch

from dreamgym.models import held
from dreamgym.models.cache import CacheShape, KVCache
from dreamgym.models.decode import Decoder, Query
from dreamgym.models.held import HeldRows
from dreamgym.models.llama import Llama
from dreamgym.models.scoring import Choice

SHAPE = CacheShape(layers=2, heads=1, head_dim=2)
Ids = tuple[int, ...]


def use(rows: HeldRows, sequences: list[Ids], *, columns: int = 40) -> list[tuple[int, int]]:
    """Take rows, check and write what they hold; return their places and what they held."""
    cache: KVCache = rows.take(sequences, columns=columns)
    found = list(zip(cache.at.tolist(), cache.lengths.tolist(), strict=True))
    for (place, length), ids in zip(found, sequences, strict=True):
        numbers = torch.tensor(ids, dtype=torch.float32)
        assert bool((cache.store[:, :, place, :length, 0, 0] == numbers[:length]).all())
        cache.store[:, :, place, : len(ids)] = numbers[:, None, None]
    rows.hold(cache, sequences)
    return found


def test_who_goes_on_finds_the_row_again() -> None:
    rows = HeldRows(SHAPE)
    first, second = (1, 2, 3), (1, 2, 4, 5)
    (here, _), (there, _) = use(rows, [first, second])
    assert here != there
    assert use(rows, [(*second, 6), (*first, 6)]) == [(there, 4), (here, 3)]
    assert rows.find((1, 2, 3)) is None, "it holds more now"


def test_the_last_token_is_always_left_to_be_read() -> None:
    rows = HeldRows(SHAPE)
    ((place, _),) = use(rows, [(1, 2, 3)])
    assert use(rows, [(1, 2, 3)]) == [(place, 2)]


def test_two_who_were_one_need_two_rows() -> None:
    rows = HeldRows(SHAPE)
    ((place, _),) = use(rows, [(1, 2, 3)])
    (one, other) = use(rows, [(1, 2, 3, 4), (1, 2, 3, 5)])
    assert one == (place, 3)
    assert other[1] == 0
    assert other[0] != place


def test_rows_that_were_taken_and_never_held_are_free() -> None:
    rows = HeldRows(SHAPE)
    use(rows, [(1, 2, 3)])
    cache = rows.take([(1, 2, 3, 4)], columns=40)
    assert rows.find((1, 2, 3, 4)) is None
    assert use(rows, [(1, 2, 3, 4)])[0][1] == 0
    cache.store = cache.store.clone()
    rows.hold(cache, [(9, 9)])
    assert rows.find((9, 9)) is None, "this is no row of ours"


def test_the_row_used_longest_ago_goes_first() -> None:
    rows = HeldRows(SHAPE)
    for half in (range(64), range(64, held.LEAST_ROWS)):
        use(rows, [(n,) for n in half])
    use(rows, [(0, 1)])
    use(rows, [(500,), (501,)])
    assert rows.find((0, 1)) is not None
    assert [rows.find((n,)) for n in (1, 2)] == [None, None]
    assert rows.find((3,)) is not None


def test_who_does_not_come_back_with_the_others_has_ended() -> None:
    rows = HeldRows(SHAPE)
    places = [place for place, _ in use(rows, [(1,), (2,), (3,)])]
    assert use(rows, [(1, 1), (3, 3), (4,)]) == [(places[0], 1), (places[2], 1), (places[1], 0)]
    assert use(rows, [(5,)])[0][0] not in places, "nobody came back: all may"
    assert use(rows, [(6,), (1, 1, 1)])[1] == (places[0], 2)
    assert rows.find((4,)) is None, "its row was taken"
    assert rows.find((5,)) is not None, "it came later"


def test_more_room_keeps_what_was_held() -> None:
    rows = HeldRows(SHAPE)
    (place, _), _ = use(rows, [(1, 2, 3), (7, 8)])
    assert use(rows, [(1, 2, 3, 4)], columns=2 * held.LEAST_COLUMNS) == [(place, 3)]
    many = [(7, 8, n) for n in range(2 * held.LEAST_ROWS)]
    assert use(rows, many)[0][1] == 2
    assert rows.find((1, 2, 3, 4)) is not None
    rows.forget()
    assert use(rows, [(1, 2, 3, 4)]) == [(0, 0)]


def test_no_room_to_spare() -> None:
    rows = HeldRows(CacheShape(layers=64, heads=64, head_dim=1024))
    small = rows.take([(1, 2)], columns=20)
    assert small.store.shape[2:4] == (1, 32)
    rows.hold(small, [(1, 2)])
    assert rows.take([(3,), (4,)], columns=40).store.shape[2:4] == (2, 64)


def episodes(decoder: Decoder, count: int, *, turns: int) -> tuple[list[object], int]:
    """Play made-up episodes that go on from what was answered; some drop out for a while."""
    rng = random.Random(3)
    texts: list[Ids] = [tuple(rng.randrange(97) for _ in range(10)) for _ in range(count)]
    texts[1] = texts[0]
    found: list[object] = []
    for turn in range(turns):
        some = [n for n in range(count) if rng.random() < 0.8]
        asked = [Query(texts[n], max_new=4, temperature=float(n % 2), seed=turn) for n in some]
        answers = decoder.generate(asked)
        found += answers
        for n, answer in zip(some, answers, strict=True):
            texts[n] += (*answer.ids, turn, n // 2, 5)
        chosen = decoder.score([Choice(texts[n], ((1, 2), (3,), (4, 5, 6))) for n in some[:5]])
        found += chosen
    return found, decoder.read_tokens


def test_what_is_held_changes_no_bit_and_saves_reading(llama: Llama) -> None:
    decoder = Decoder(llama)
    played, read = episodes(decoder, 9, turns=8)
    again, forgetful = episodes(Forgetful(llama), 9, turns=8)
    assert played == again
    assert read < forgetful / 3


class Forgetful:
    """Asks a new decoder every question by itself."""

    def __init__(self, model: Llama) -> None:
        self._model = model
        self.read_tokens = 0

    def generate(self, queries: list[Query]) -> list[object]:
        return [self._new(lambda one, q=query: one.generate([q])[0]) for query in queries]

    def score(self, choices: list[Choice]) -> list[object]:
        return [self._new(lambda one, c=choice: one.score([c])[0]) for choice in choices]

    def _new(self, ask: object) -> object:
        decoder = Decoder(self._model, memory_mb=0)
        answer = ask(decoder)
        self.read_tokens += decoder.read_tokens
        return answer
