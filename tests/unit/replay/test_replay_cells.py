"""Cells: the approximate part of search."""

from __future__ import annotations

import numpy as np
import pytest

from dreamgym.replay.cells import CELL, build, extend


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((120, 32))
    vectors = centres[rng.integers(120, size=12_000)] + 0.3 * rng.standard_normal((12_000, 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    halves = vectors.astype(np.float16)
    rows = np.arange(1, 12_001)
    return {4: (rows[:9000], halves[:9000]), 7: (rows[9000:], halves[9000:])}


@pytest.fixture(scope="module")
def cells(groups):
    return build(groups)


def test_every_row_lies_in_one_cell_of_its_group(cells, groups):
    assert sorted(cells.rows.tolist()) == list(range(1, 12_001))
    sizes = np.diff(cells.starts)
    assert sizes.max() <= 4 * CELL
    owner = np.repeat(cells.groups, sizes)
    for code, (rows, _) in groups.items():
        assert sorted(cells.rows[owner == code].tolist()) == rows.tolist()


def test_few_rows_read_find_most_of_the_nearest(cells, groups):
    rows, vectors = (np.concatenate(parts) for parts in zip(*groups.values(), strict=True))
    exact = vectors.astype(np.float32)
    hits = 0
    for number in range(0, 12_000, 240):
        query = exact[number]
        nearest = set(rows[np.argsort(-(exact @ query))[:8]].tolist())
        near = cells.shortlist(query, visible=[4, 7], alive=None, read=2000, keep=40)
        hits += len(nearest & set(near.tolist()))
    assert hits / (8 * 50) > 0.95


def test_other_groups_and_the_dead_are_never_found(cells, groups):
    query = groups[4][1][0].astype(np.float32)
    only = cells.shortlist(query, visible=[7], alive=None, read=500, keep=30)
    assert only.min() > 9000
    alive = cells.rows % 2 == 0
    left = cells.shortlist(query, visible=[4, 7], alive=alive, read=500, keep=30)
    assert len(left) == 30
    assert (left % 2 == 0).all()
    nobody = np.zeros(12_000, dtype=np.bool_)
    assert len(cells.shortlist(query, visible=[4], alive=nobody, read=500, keep=30)) == 0
    assert len(cells.shortlist(query, visible=[], alive=None, read=500, keep=30)) == 0


def test_it_reads_on_until_there_are_enough(cells, groups):
    query = groups[4][1][0].astype(np.float32)
    alive = np.isin(cells.rows, [11, 4000, 8999])
    found = cells.shortlist(query, visible=[4, 7], alive=alive, read=100, keep=3)
    assert sorted(found.tolist()) == [11, 4000, 8999]
    everything = cells.shortlist(query, visible=[4, 7], alive=None, read=100, keep=50_000)
    assert len(everything) == 12_000


def test_new_vectors_join_the_cells_and_the_dead_leave(groups):
    first = {4: tuple(part[:6000] for part in groups[4])}
    later = {4: tuple(part[6000:] for part in groups[4]), 7: groups[7]}
    cells = build(first)
    alive = cells.rows % 3 != 0
    grown = extend(cells, later, alive=alive)
    wanted = [row for row in range(1, 12_001) if row > 6000 or row % 3]
    assert sorted(grown.rows.tolist()) == wanted
    owner = np.repeat(grown.groups, np.diff(grown.starts))
    assert set(grown.rows[owner == 7].tolist()) == set(groups[7][0].tolist())
    rows, vectors = (np.concatenate(parts) for parts in zip(*groups.values(), strict=True))
    by_row = dict(zip(rows.tolist(), vectors.astype(np.float32), strict=True))
    decoded = grown.codes.astype(np.float32) * grown.scales[:, None]
    exact = np.array([by_row[row] for row in grown.rows.tolist()])
    assert np.abs(decoded - exact).max() < 0.01
    hits = 0
    for number in range(0, len(exact), 200):
        best = set(grown.rows[np.argsort(-(exact @ exact[number]))[:8]].tolist())
        near = grown.shortlist(exact[number], visible=[4, 7], alive=None, read=2000, keep=40)
        hits += len(best & set(near.tolist()))
    assert hits / (8 * len(range(0, len(exact), 200))) > 0.95
    assert extend(grown, {}, alive=grown.rows < 0).rows.size == 0


def test_equal_vectors_do_not_make_a_giant_cell():
    same = np.tile(np.eye(16, dtype=np.float16)[:1], (10 * CELL, 1))
    cells = build({1: (np.arange(10 * CELL), same)})
    assert np.diff(cells.starts).max() <= 4 * CELL
    assert np.isfinite(cells.centres).all()
    found = cells.shortlist(same[0].astype(np.float32), visible=[1], alive=None, read=1, keep=9)
    assert len(found) == 9


def test_building_is_repeatable(groups):
    one, two = build(groups), build(groups)
    assert (one.rows == two.rows).all()
    assert (one.codes == two.codes).all()
