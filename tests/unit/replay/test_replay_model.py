"""The store against a slow, obvious model of it: any mix of adding, evicting and searching."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dreamgym.replay import Capacity, open_store
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.key import KeyEncoder
from dreamgym.types import Source, Transition

ROOMS = ("hall", "attic", "cellar", "old garden")
ENCODER = KeyEncoder(HashingEmbedder())


@dataclass
class Row:
    number: int
    first: Transition
    other: Transition | None
    count: int
    seen: int


class Model:
    """Lists and loops."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.numbers = 0
        self.known: list[str] = []

    def add(self, trajectory) -> None:
        if trajectory.id in self.known:
            return
        self.known.append(trajectory.id)
        for step in trajectory.transitions():
            same = [row for row in self.rows if meaning(row.first) == meaning(step)]
            if same:
                (row,) = same
                row.count += 1
                row.seen = len(self.known)
                if row.other is None and row.first.trajectory_id != step.trajectory_id:
                    row.other = step
            else:
                self.numbers += 1
                self.rows.append(Row(self.numbers, step, None, 1, len(self.known)))

    def evict(self, source, keep) -> None:
        mine = sorted(
            (row for row in self.rows if row.first.source is source),
            key=lambda row: (row.seen, row.number),
        )
        for row in mine[: max(0, len(mine) - keep)]:
            self.rows.remove(row)

    def search(self, state, action, *, k, exclude, env, real_slots):
        (query,) = ENCODER.encode([state], [action])
        found = []
        for row in self.rows:
            told = row.first
            if told.trajectory_id == exclude:
                told = row.other
            if told is None or env not in (None, told.env):
                continue
            (key,) = ENCODER.encode([told.state], [told.action])
            cosine = (key.astype(np.float64) * query).sum()
            found.append((-cosine, row.number, told, row.count))
        found.sort(key=lambda item: item[:2])
        best = found[:k]
        real = [item for item in found if item[2].source is Source.REAL]
        for item in real[: min(k, real_slots)]:
            if item not in best:
                worst = [one for one in best if one[2].source is Source.DREAM][-1]
                best.remove(worst)
                best.append(item)
        best.sort(key=lambda item: item[:2])
        return [(told, count) for _, _, told, count in best]


def meaning(step: Transition):
    place = (step.env, step.source, step.split)
    outcome = (step.next_state, step.reward, step.done, step.success, step.refused)
    return place, step.goal, step.state, step.action, outcome


rooms = st.sampled_from(ROOMS)
walks = st.builds(
    lambda number, way, env, source: (f"t{number}", way, f"toy/{env}", source),
    st.integers(0, 14),
    st.lists(rooms, min_size=2, max_size=5),
    st.sampled_from(["house", "barn"]),
    st.sampled_from(list(Source)),
)
operations = st.one_of(
    st.tuples(st.just("add"), st.lists(walks, min_size=1, max_size=3)),
    st.tuples(st.just("evict"), st.tuples(st.sampled_from(list(Source)), st.integers(0, 6))),
    st.tuples(
        st.just("search"),
        st.tuples(
            rooms,
            rooms,
            st.integers(1, 6),
            st.none() | st.integers(0, 14).map("t{}".format),
            st.none() | st.just("toy/house"),
        ),
    ),
    st.tuples(st.just("reopen"), st.none()),
)


@pytest.mark.parametrize("exact_limit", [1000, 6], ids=["exact", "cells"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.lists(operations, min_size=3, max_size=14), real_slots=st.integers(0, 2))
def test_the_store_does_what_the_model_does(walk, plan, real_slots, exact_limit):
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "experience.sqlite"

        def reopen():
            return open_store(path, real_slots=real_slots, exact_limit=exact_limit)

        store = reopen()
        for name, details in plan:
            if name == "add":
                batch = [walk(t, *way, env=env, source=source) for t, way, env, source in details]
                store.add(batch)
                for trajectory in batch:
                    model.add(trajectory)
            elif name == "evict":
                source, keep = details
                store.evict(Capacity(**{source.value: keep}))
                model.evict(source, keep)
            elif name == "search":
                here, there, k, exclude, env = details
                asked = (f"You are in the {here}.", f"go to {there}")
                hits = store.search(*asked, k=k, exclude_trajectory=exclude, env=env)
                wanted = model.search(*asked, k=k, exclude=exclude, env=env, real_slots=real_slots)
                assert [(hit.transition, hit.count) for hit in hits] == wanted
            else:
                store.close()
                store = reopen()
        assert store.trajectory_ids() == set(model.known)
        assert sum(group.transitions for group in store.stats()) == len(model.rows)
        store.close()
