"""Sequences as tensors: what stands where, and that filler is nowhere."""

from __future__ import annotations

import numpy as np
import torch

from dreamgym.train.batch import Columns, Row, collate, plan_passes, plan_trunks
from dreamgym.train.tokens import TokenSequence

LONG = TokenSequence((5, 6, 7, 8, 9), (-1, 0, 0, -1, 1), (-0.1, -0.2, -0.3))
SHORT = TokenSequence((3, 4), (-1, 0), (-0.4,))


def test_a_batch_by_hand():
    rows = [
        Row(LONG, Columns(old=np.array([1.0, 2.0, 3.0])), weight=0.5, unit=7),
        Row(SHORT, Columns(old=np.array([4.0])), weight=0.25, unit=3, sign=-1.0),
    ]
    batch = collate(rows)
    assert batch.ids_UT.tolist() == [[5, 6, 7, 8, 9], [3, 4, 0, 0, 0]]
    assert batch.trunks_R.tolist() == [0, 1]
    assert batch.rows_N.tolist() == [0, 0, 0, 1]
    assert batch.before_N.tolist() == [0, 1, 3, 0]
    assert batch.targets_N.tolist() == [6, 7, 9, 4]
    assert batch.old_N.tolist() == [1, 2, 3, 4]
    assert batch.weights_N.tolist() == [0.5, 0.5, 0.5, 0.25]
    assert batch.units_R.tolist() == [1, 0], "numbered within the batch"
    assert batch.weights_R.tolist() == [0.5, 0.25]
    assert batch.signs_R.tolist() == [1, -1]
    assert batch.tokens == 4
    assert batch.advantages_N is batch.returns_N is batch.values_N is batch.reference_N is None


def test_what_two_rows_read_alike_is_read_once():
    batch = collate([Row(SHORT, weight=0.5), Row(LONG), Row(SHORT, weight=0.25)])
    assert batch.ids_UT.tolist() == [[3, 4, 0, 0, 0], [5, 6, 7, 8, 9]]
    assert batch.trunks_R.tolist() == [0, 1, 0]
    assert batch.weights_N.tolist() == [0.5, 1, 1, 1, 0.25]


def test_rows_that_are_read_alike_share_a_pass():
    sequences = [LONG, SHORT, LONG, SHORT, LONG]
    passes = sorted(sorted(numbers) for numbers in plan_trunks(sequences, budget=5))
    assert passes == [[0, 2, 4], [1, 3]], "however little room there is"


def test_a_row_without_actions_is_a_row():
    batch = collate([Row(TokenSequence((1, 2), (-1, -1), ())), Row(SHORT)])
    assert batch.rows_N.tolist() == [1]
    assert collate([Row(TokenSequence((1, 2), (-1, -1), ()))]).tokens == 0


def test_a_column_that_not_all_rows_have_is_left_out():
    full, bare = Row(SHORT, Columns(old=np.zeros(1))), Row(SHORT)
    assert collate([full, bare]).old_N is None


def test_numbers_get_the_precision_of_the_model():
    row = Row(SHORT, Columns(old=np.array([1 / 3])))
    assert collate([row], like=torch.zeros(1, dtype=torch.float64)).old_N.tolist() == [1 / 3]
    assert collate([row]).old_N.dtype == torch.float32
    half = collate([row], like=torch.zeros(1, dtype=torch.bfloat16))
    assert half.old_N.dtype == half.weights_N.dtype == torch.float32, "never less than that"


def test_columns_are_cut_with_their_rows():
    columns = Columns(old=np.arange(5.0), advantages=np.arange(5.0) * 2)
    part = columns.part(1, 3)
    assert part.old.tolist() == [1, 2]
    assert part.advantages.tolist() == [2, 4]
    assert part.returns is None


def test_passes_hold_every_sequence_once_and_keep_to_the_budget():
    sizes = [3, 30, 4, 29, 5, 100]
    passes = plan_passes(sizes, budget=60)
    assert sorted(number for one in passes for number in one) == list(range(6))
    for one in passes:
        assert len(one) * max(sizes[number] for number in one) <= 60 or len(one) == 1
    assert {frozenset(one) for one in passes} == {
        frozenset({0, 2, 4}),
        frozenset({1, 3}),
        frozenset({5}),
    }
