"""A dream's memory grows by what is dreamt in it, and only the copy of it."""

import asyncio
from dataclasses import replace

import pytest

from dreamgym import build, dreams
from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.enrich import GrowingMemory
from dreamgym.rollout.groups import Group
from dreamgym.types import Observation, Source, Split

STATE = "a room that nobody has ever been to"


def dreamt(dream, *, unknown=False):
    """A group of one: a recorded episode, begun in a room that there is not."""
    known = next(iter(dream.store.trajectories(split=Split.TRAIN)))
    first, made = known.steps[0], replace(known.provenance, source=Source.DREAM, mapper="")
    told = "[unknown] unlike: nothing like it" if unknown else "so it goes"
    episode = replace(
        known, id=f"dreamt {unknown}", opening=Observation(STATE), provenance=made,
        steps=(replace(first, reasoning=told),),
    )  # fmt: skip
    return Group(known.task, (episode,)), first.action.text


def nearest(dream, action):
    (hit,) = dream.world.memory.search(STATE, action, k=1, source=Source.DREAM) or (None,)
    return hit and hit.transition.state


def test_what_was_dreamt_is_found_until_its_step_is_repeated(small_dream, tmp_path):
    path = tmp_path / "memory.sqlite"

    def after(made):
        dream = dreams.open_dream(small_dream / "dream")
        memory = GrowingMemory(dream, path, made=made)
        group, action = dreamt(dream)
        before = nearest(dream, action)
        memory.remember(3, [group])
        memory.remember(3, [dreamt(dream, unknown=True)[0]])
        found = nearest(dream, action), len(list(dream.store.trajectories(source=Source.DREAM)))
        memory.close()
        asyncio.run(dream.close())
        return before, *found

    assert after(0) == (None, STATE, 0), "the dream's own store stays as it is"
    assert after(3) == (None, STATE, 0), "step 3 is made again and must not find itself"
    assert after(4) == (STATE, STATE, 0), "step 4 finds what step 3 left"


def test_a_kill_while_the_memory_is_made_anew_loses_nothing(small_dream, tmp_path, monkeypatch):
    path = tmp_path / "memory.sqlite"
    dream = dreams.open_dream(small_dream / "dream")
    memory = GrowingMemory(dream, path, made=0)
    group, action = dreamt(dream)
    memory.remember(0, [group])
    memory.close()

    def killed(store, episodes):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dreamgym.jobs.enrich.keep_episodes", killed)
        with pytest.raises(KeyboardInterrupt):
            GrowingMemory(dream, path, made=1)
    memory = GrowingMemory(dream, path, made=1)
    assert nearest(dream, action) == STATE
    memory.close()
    asyncio.run(dream.close())
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_memory_is_read_with_the_embedder_of_its_dream(small_dream, tmp_path, monkeypatch):
    opened = []

    def noted(path, config):
        opened.append((path.name, config.embedder))
        return make_store(path, config)

    make_store = build.make_store
    dream = dreams.open_dream(small_dream / "dream")
    monkeypatch.setattr(build, "make_store", noted)
    for made in (0, 1):
        GrowingMemory(dream, tmp_path / "memory.sqlite", made=made).close()
    assert {embedder for _, embedder in opened} == {dream.card.embedder}
    assert [name for name, _ in opened].count("memory.sqlite") == 3, "twice to grow, once to read"
    asyncio.run(dream.close())


def test_episodes_that_nobody_could_tell_are_not_remembered(small_dream, tmp_path):
    dream = dreams.open_dream(small_dream / "dream")
    memory = GrowingMemory(dream, tmp_path / "memory.sqlite", made=0)
    group, action = dreamt(dream, unknown=True)
    memory.remember(0, [group])
    assert nearest(dream, action) is None
    memory.close()
    asyncio.run(dream.close())


def test_reality_has_no_memory_to_enrich():
    with pytest.raises(ConfigError, match="rl.world is real"):
        load_config(settings=["rl.enrich=true"])
