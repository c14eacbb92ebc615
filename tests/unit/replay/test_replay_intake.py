"""What `add` reports, and what it does when others write in between."""

from __future__ import annotations

import pytest

from dreamgym.errors import ConfigError
from dreamgym.replay import Capacity, open_store
from dreamgym.replay.intake import AddReport, Admission, prepare
from dreamgym.replay.key import KeyEncoder
from dreamgym.types import Source, Split


class Meanwhile(KeyEncoder):
    """Does something else between the look at the store and the writing."""

    def __init__(self, embedder) -> None:
        super().__init__(embedder)
        self.deed = lambda: None

    def encode(self, states, actions):
        deed, self.deed = self.deed, lambda: None
        deed()
        return super().encode(states, actions)


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "experience.sqlite") as store:
        store._encoder = Meanwhile(store._encoder._embedder)
        yield store


def test_the_same_trajectory_added_by_another_meanwhile(store, walk):
    with open_store(store.path) as other:
        store._encoder.deed = lambda: other.add([walk("t1", "hall", "attic")])
        report = store.add([walk("t1", "hall", "attic"), walk("t2", "hall", "cellar")])
    assert (report.trajectories, report.known, report.transitions) == (1, 1, 1)


def test_a_duplicate_evicted_by_another_meanwhile(store, walk):
    store.add([walk("d1", "hall", "attic", source=Source.DREAM)])
    with open_store(store.path) as other:
        store._encoder.deed = lambda: other.evict(Capacity(dream=0))
        twice = walk("d2", "hall", "attic", "cellar", source=Source.DREAM)
        report = store.add([twice])
        assert (report.transitions, report.duplicates) == (2, 0)
        (hit,) = other.search("You are in the hall.", "go to attic", k=1)
        assert (hit.transition.id, hit.count) == ("d2#0", 1)


def test_another_mapper_claimed_meanwhile(store, walk):
    with open_store(store.path) as other:
        store._encoder.deed = lambda: other.add([walk("t1", "hall", "attic", mapper="m2")])
        report = store.add([walk("t2", "hall", "attic", mapper="m1")])
    assert report.refused_by_rule == {"mapper": 1}
    assert store.trajectory_ids() == {"t1"}


def test_a_trajectory_is_packed_without_what_may_not_be_found(walk):
    trajectory = walk("d1", "hall", "<think>", "attic", source=Source.DREAM)
    prepared = prepare(trajectory, Admission(frozenset(Split)))
    assert [transition.index for transition, _ in prepared.steps] == [1]
    assert [refusal.index for refusal in prepared.refused] == [0]


def test_an_empty_report():
    assert AddReport().refused_by_rule == {}


def test_capacities_are_not_negative():
    with pytest.raises(ConfigError, match="dream=-1"):
        Capacity(dream=-1)
