"""The public face of the experience store."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dreamgym.errors import ReplayError
from dreamgym.protocols import Reference, Retriever
from dreamgym.replay import Capacity, HashingEmbedder, Query, open_store
from dreamgym.replay.database import Database
from dreamgym.types import EpisodeFailure, Source, Split, StopReason


@pytest.fixture
def path(tmp_path):
    return tmp_path / "experience.sqlite"


def hits_of(store, state, action, **options):
    return [hit.transition.id for hit in store.search(state, action, **options)]


def test_what_was_added_is_found_and_read_back(path, walk):
    trajectory = walk("t1", "kitchen", "hall", "garden")
    with open_store(path) as store:
        report = store.add([trajectory, walk("t2", "cellar", "attic")])
        assert (report.trajectories, report.transitions, report.duplicates) == (2, 3, 0)
        assert report.refused == ()
    with open_store(path) as store:
        (hit,) = store.search("You are in the hall.", "go to garden", k=1)
        assert hit.transition == list(trajectory.transitions())[1]
        assert hit.similarity == pytest.approx(1.0, abs=1e-3)
        assert list(store.trajectories()) == [trajectory, walk("t2", "cellar", "attic")]
        assert store.has("t1")
        assert not store.has("t3")
        assert store.trajectory_ids() == {"t1", "t2"}


def test_it_is_a_retriever_and_hits_are_references(path, walk):
    with open_store(path) as store, store.snapshot() as snapshot:
        memory: Retriever = store
        frozen: Retriever = snapshot
        store.add([walk("t1", "kitchen", "hall")])
        (hit,) = memory.search("You are in the kitchen.", "go to hall", k=1)
        reference: Reference = hit
        assert reference.transition.id == "t1#0"
        assert frozen.search("You are in the kitchen.", "go to hall", k=1) == ()


def test_adding_again_under_the_same_id_changes_nothing(path, walk):
    with open_store(path) as store:
        store.add([walk("t1", "kitchen", "hall")])
        before = store.stats()
        report = store.add([walk("t1", "kitchen", "hall"), walk("t1", "attic", "cellar")])
        assert (report.known, report.trajectories, report.transitions) == (2, 0, 0)
        assert store.stats() == before
        first, other = walk("t2", "hall", "attic"), walk("t3", "hall", "attic")
        assert store.add([first, other, walk("t2", "attic", "hall")]).known == 1
        assert list(store.trajectories())[1:] == [first, other]


def test_a_transition_is_stored_once_but_its_trajectories_stay_complete(path, walk):
    with open_store(path) as store:
        report = store.add([walk("t1", "hall", "attic"), walk("t2", "hall", "attic", "hall")])
        assert (report.transitions, report.duplicates) == (2, 1)
        assert [len(t.steps) for t in store.trajectories()] == [1, 2]
        best, _ = store.search("You are in the hall.", "go to attic", k=5)
        assert (best.transition.id, best.count) == ("t1#0", 2)
        assert store.add([walk("t3", "hall", "attic", source=Source.DREAM)]).duplicates == 0
        assert store.add([walk("t4", "hall", "attic", goal="another")]).duplicates == 0
        assert store.add([walk("t5", "hall", "attic", env="toy/barn")]).duplicates == 0


def test_leaving_a_trajectory_out_hides_only_what_no_other_saw(path, walk):
    shared = walk("t2", "attic", "hall", "garden").with_reasoning(("up there", "out there"))
    with open_store(path) as store:
        store.add([walk("t1", "hall", "garden", "shed").with_reasoning(("mine", "mine too"))])
        asked = {"state": "You are in the hall.", "action": "go to garden", "k": 9}
        assert store.search(**asked, exclude_trajectory="t1") == ()
        store.add([shared])
        hits = store.search(**asked, exclude_trajectory="t1")
        first, second = shared.transitions()
        assert [hit.transition for hit in hits] == [second, first]
        assert hits_of(store, **asked, exclude_trajectory="t2") == ["t1#0", "t1#1"]
        assert len(hits_of(store, **asked, exclude_trajectory="unknown")) == 3


def test_filters_by_environment_source_and_split(path, walk):
    with open_store(path) as store:
        store.add(
            [
                walk("a", "hall", "attic"),
                walk("b", "hall", "attic", env="toy/barn"),
                walk("c", "hall", "attic", source=Source.DREAM),
                walk("d", "hall", "attic", split=Split.DEV),
            ]
        )
        asked = {"state": "You are in the hall.", "action": "go to attic", "k": 9}
        assert len(hits_of(store, **asked)) == 4
        assert hits_of(store, **asked, env="toy/barn") == ["b#0"]
        assert hits_of(store, **asked, source=Source.DREAM) == ["c#0"]
        assert hits_of(store, **asked, split=Split.DEV) == ["d#0"]
        assert hits_of(store, **asked, env="toy/nowhere") == []
        assert [t.id for t in store.trajectories(source=Source.DREAM)] == ["c"]
        assert [t.id for t in store.trajectories(env="toy/house", split=Split.TRAIN)] == ["a", "c"]


def test_real_experience_keeps_its_slots_however_near_the_dreams_are(path, walk):
    dreams = [walk(f"d{n}", "hall", "attic", goal=f"{n}", source=Source.DREAM) for n in range(5)]
    with open_store(path, real_slots=2) as store:
        store.add([*dreams, walk("r1", "cellar", "shed"), walk("r2", "garden", "shed")])
        found = store.search("You are in the hall.", "go to attic", k=4)
        assert [hit.transition.source for hit in found] == ["dream", "dream", "real", "real"]
        assert found[0].similarity >= found[-1].similarity
        assert len(store.search("You are in the hall.", "go to attic", k=1)) == 1
    with open_store(path, real_slots=0) as store:
        found = store.search("You are in the hall.", "go to attic", k=4)
        assert {hit.transition.source for hit in found} == {Source.DREAM}


def test_a_batch_answers_like_single_searches(path, walk):
    rooms = ("hall", "attic", "cellar", "garden", "shed")
    with open_store(path) as store:
        store.add(
            [
                walk(f"t{n}", *(rooms[(n * i) % 5] for i in range(6)), env=f"toy/{n % 2}")
                for n in range(1, 9)
            ]
        )
        queries = [
            Query(f"You are in the {here}.", f"go to {there}", exclude, env)
            for here in rooms
            for there in rooms
            for exclude in (None, "t3")
            for env in (None, "toy/1")
        ]
        together = store.search_batch(queries, k=3)
        for query, answer in zip(queries, together, strict=True):
            alone = store.search(
                query.state,
                query.action,
                k=3,
                exclude_trajectory=query.exclude_trajectory,
                env=query.env,
            )
            assert alone == answer
        assert store.search_batch([], k=3) == []
        assert store.search("x", "y", k=0) == ()


def test_update_replaces_explanations_and_nothing_else(path, walk):
    trajectory = walk("t1", "hall", "attic")
    with open_store(path) as store:
        store.add([trajectory])
        store.update(trajectory.with_reasoning(("stairs lead up",)))
        (hit,) = store.search("You are in the hall.", "go to attic", k=1)
        assert hit.transition.reasoning == "stairs lead up"
        assert next(store.trajectories()).steps[0].reasoning == "stairs lead up"
        with pytest.raises(ReplayError, match="more than its explanations"):
            store.update(walk("t1", "hall", "cellar"))
        with pytest.raises(ReplayError, match="more than its explanations"):
            store.update(walk("t1", "hall", "attic", "hall"))
        with pytest.raises(ReplayError, match="half a character"):
            store.update(trajectory.with_reasoning(("\udc80",)))
        with pytest.raises(ReplayError, match="not in the store"):
            store.update(walk("t9", "hall", "attic"))


def test_a_snapshot_does_not_change(path, walk):
    with open_store(path) as store:
        store.add([walk("d1", "hall", "attic", source=Source.DREAM)])
        with store.snapshot() as snapshot:
            store.add([walk("d2", "hall", "cellar", source=Source.DREAM)])
            assert store.evict(Capacity(dream=1)) == 1
            asked = {"state": "You are in the hall.", "action": "go to cellar", "k": 5}
            assert hits_of(snapshot, **asked) == ["d1#0"]
            assert hits_of(store, **asked) == ["d2#0"]


def test_a_snapshot_may_be_of_one_environment(path, walk):
    with open_store(path) as store:
        store.add([walk("a", "hall", "attic"), walk("b", "hall", "attic", env="toy/barn")])
        with store.snapshot(env="toy/barn") as snapshot:
            asked = {"state": "You are in the hall.", "action": "go to attic", "k": 5}
            assert hits_of(snapshot, **asked) == ["b#0"]
            assert hits_of(snapshot, **asked, env="toy/house") == ["a#0"]


def test_eviction_takes_the_stalest_dreams_and_spares_reality(path, walk):
    dreams = [walk(f"d{n}", "hall", f"room {n}", source=Source.DREAM) for n in range(6)]
    with open_store(path, capacity=Capacity(dream=3)) as store:
        store.add([walk("r1", "hall", "attic"), *dreams[:3]])
        again = replace(dreams[0], id="again")
        assert store.add([again]).evicted == 0
        assert store.add(dreams[3:5]).evicted == 2
        found = hits_of(store, "You are in the hall.", "go to room", k=9)
        assert sorted(found) == ["d0#0", "d3#0", "d4#0", "r1#0"]
        assert [t.id for t in store.trajectories()] == ["r1", "again", "d3", "d4"]
        assert store.has("d1")
        assert store.add([dreams[1]]).known == 1
        assert store.evict(Capacity(real=0, dream=0)) == 4
        assert store.search("You are in the hall.", "go to attic", k=9) == ()
        assert [t.id for t in store.trajectories()] == ["r1"]
        with pytest.raises(ReplayError, match="evicted"):
            store.update(dreams[1])


def test_two_open_stores_see_each_other(path, walk):
    with open_store(path) as one, open_store(path) as two:
        one.add([walk("d1", "hall", "attic", source=Source.DREAM)])
        assert hits_of(two, "You are in the hall.", "go to attic", k=3) == ["d1#0"]
        two.add([walk("d2", "hall", "cellar", source=Source.DREAM)])
        assert hits_of(one, "You are in the hall.", "go to cellar", k=1) == ["d2#0"]
        two.evict(Capacity(dream=1))
        assert hits_of(one, "You are in the hall.", "go to attic", k=3) == ["d2#0"]


def test_threads_may_share_a_store(path, walk):
    with open_store(path, capacity=Capacity(dream=20)) as store:
        store.add([walk("t0", "hall", "attic")])
        failures = []

        def work(number: int) -> None:
            try:
                for turn in range(10):
                    room = f"room {number} {turn}"
                    store.add([walk(f"t{number}-{turn}", "hall", room)])
                    store.add([walk(f"d{number}-{turn}", "hall", room, source=Source.DREAM)])
                    assert len(store.search("You are in the hall.", f"go to {room}", k=9)) > 1
                    with store.snapshot() as snapshot:
                        assert snapshot.search("You are in the hall.", f"go to {room}", k=1)
            except Exception as error:  # noqa: BLE001 - reported by the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store.trajectory_ids()) == 81


def test_held_out_tasks_stay_out(path, walk, tmp_path):
    held_out = walk("t1", "hall", "attic", split=Split.TEST)
    with open_store(path) as store:
        (refusal,) = store.add([held_out]).refused
        assert refusal.rule == "split"
        assert not store.has("t1")
    with pytest.raises(ReplayError, match="store of their own"):
        open_store(path, allow_test=True)
    with open_store(tmp_path / "other.sqlite", allow_test=True) as store:
        assert store.add([held_out]).trajectories == 1
    with open_store(tmp_path / "other.sqlite") as store:
        assert store.has("t1")
        assert store.add([replace(held_out, id="t2")]).refused_by_rule == {"split": 1}


def test_refusals_are_reported_and_the_rest_enters(path, walk):
    broken = replace(
        walk("broken", "hall", "attic"),
        stop=StopReason.FAILED,
        error=EpisodeFailure("EnvTimeout", "env.step", "slow"),
    )
    with open_store(path) as store:
        store.add([walk("t1", "hall", "attic", mapper="m1")])
        speechless = walk("t3", "hall", "attic", "cellar")
        speechless = replace(speechless, opening=replace(speechless.opening, text=" \n"))
        report = store.add([broken, walk("t2", "hall", "attic", mapper="m2"), speechless])
        assert report.refused_by_rule == {"failed-episode": 1, "mapper": 1, "empty-text": 1}
        assert (report.trajectories, report.transitions) == (1, 1)
        assert store.trajectory_ids() == {"t1", "t3"}
        assert next(r for r in report.refused if r.rule == "mapper").reason.count("m2") == 1


def test_another_embedder_is_refused_with_the_fix(path, walk):
    with open_store(path) as store:
        store.add([walk("t1", "hall", "attic")])
    with pytest.raises(ReplayError, match=r"hashing-1-256.*hashing-1-64.*replay reindex"):
        open_store(path, embedder=HashingEmbedder(64))
    with pytest.raises(ReplayError, match="w=2"):
        open_store(path, action_weight=2.0)


def test_text_that_no_file_can_hold_is_refused(path, walk):
    with open_store(path) as store:
        for torn in (walk("\udc80", "hall", "attic"), walk("t", "hall", "attic", env="\udc80")):
            assert store.add([torn]).refused_by_rule == {"unwritable-text": 1}


def test_an_error_in_the_middle_of_adding_stores_nothing(path, walk):
    def torn():
        yield walk("t1", "hall", "attic")
        raise OSError("the file ended")

    with open_store(path) as store:
        with pytest.raises(OSError, match="the file ended"):
            store.add(torn())
        assert store.trajectory_ids() == frozenset()


def test_a_full_disk_is_told_and_harms_nothing(path, walk):
    with open_store(path) as store:
        store.add([walk("t1", "hall", "attic")])
        with store._database.writing() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        store._database._connection.execute(f"PRAGMA max_page_count = {pages + 8}")
        many = [walk(f"x{n}", *(f"room {n} {i}" for i in range(30))) for n in range(20)]
        with pytest.raises(ReplayError, match=r"full; nothing of this change was stored"):
            store.add(many)
        assert store.trajectory_ids() == {"t1"}
        store._database._connection.execute("PRAGMA max_page_count = 1000000")
        assert store.add(many).trajectories == 20
        assert store._database._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"not a database at all, but long enough to be read as one" * 20, "not an experience store")],
)
def test_other_files_are_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=message):
        open_store(path)
    assert path.read_bytes() == content


def test_other_databases_are_refused(path):
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ReplayError, match="not an experience store"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_store_of_another_layout_is_refused(path):
    open_store(path).close()
    database = Database(path)
    with database.writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ReplayError, match="layout 99"):
        open_store(path)


def test_a_closed_store_says_so(path, walk):
    store = open_store(path)
    store.close()
    with pytest.raises(ReplayError, match="closed"):
        store.add([walk("t1", "hall", "attic")])
