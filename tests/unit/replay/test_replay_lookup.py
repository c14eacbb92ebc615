"""How real and dreamed results are put together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.replay.lookup import Query, merge
from dreamgym.replay.packing import Group
from dreamgym.replay.scan import Found, order
from dreamgym.types import Source, Split

scores = st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), max_size=6)


@given(scores, scores, st.integers(1, 7), st.integers(0, 3))
def test_the_best_with_enough_real_ones(real, dream, k, slots):
    reals = sorted((Found(n, s) for n, s in enumerate(real)), key=order)
    dreams = sorted((Found(100 + n, s) for n, s in enumerate(dream)), key=order)
    merged = merge(reals, dreams, k=k, real_slots=slots)
    assert merged == sorted(merged, key=order)
    assert len(merged) == min(k, len(real) + len(dream))
    kept = [found for found in merged if found.row < 100]
    assert len(kept) >= min(slots, len(real), k)
    best = sorted([*reals, *dreams], key=order)[:k]
    if sum(found.row < 100 for found in best) >= min(slots, len(real), k):
        assert merged == best
    assert kept == reals[: len(kept)]


@pytest.mark.parametrize(
    ("filters", "admitted"),
    [
        ({}, True),
        ({"env": "a"}, True),
        ({"env": "b"}, False),
        ({"source": Source.REAL, "split": Split.TRAIN}, True),
        ({"source": Source.DREAM}, False),
        ({"split": Split.DEV}, False),
    ],
)
def test_what_a_query_may_see(filters, admitted):
    group = Group("a", Source.REAL, Split.TRAIN)
    assert Query("s", "a", **filters).admits(group) is admitted
