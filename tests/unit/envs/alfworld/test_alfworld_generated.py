"""Splits of generated problems: apart by seed and by first state, stable, evenly mixed."""

from collections import Counter

import pytest

from dreamgym.envs.alfworld.game_text import TASK_TYPES
from dreamgym.envs.alfworld.generate import SIZES, Size
from dreamgym.envs.alfworld.generated import GeneratedGames, Recipe
from dreamgym.errors import ConfigError
from dreamgym.types import Split, Task

pytestmark = pytest.mark.alfworld

COUNTS = ((Split.TRAIN, 300), (Split.DEV, 60), (Split.TEST, 60))


def games(upstream, **changes):
    return GeneratedGames("spec", upstream, Recipe(**({"counts": COUNTS} | changes)))


def first_states(source, split):
    sketches = [source._sketch(*read_key(task), split) for task in source.tasks(split)]
    return [sketch.first_state for sketch in sketches]


def read_key(task):
    kind, _, seed = task.key.rpartition("-")
    return kind, int(seed)


@pytest.mark.parametrize("size", ["small", "large"])
def test_no_split_shares_a_seed_or_a_first_state_with_another(upstream, size):
    source = games(upstream, size=SIZES[size])
    seen_seeds, seen_states = set(), set()
    for split in Split:
        seeds = {read_key(task)[1] for task in source.tasks(split)}
        states = first_states(source, split)
        assert seen_seeds.isdisjoint(seeds)
        assert seen_states.isdisjoint(states)
        assert len(states) == len(set(states)) == dict(COUNTS)[split]
        seen_seeds |= seeds
        seen_states.update(states)


def test_tasks_are_stable_and_a_larger_split_begins_with_the_smaller(upstream):
    small, large = games(upstream), games(upstream, counts=((Split.TEST, 90),))
    assert large.tasks(Split.TEST)[:60] == small.tasks(Split.TEST)
    assert small.tasks(Split.TEST) == games(upstream).tasks(Split.TEST)
    first = small.tasks(Split.TEST)[0]
    assert first.id == "alfworld/generated#6x6/pick_and_place_simple-20000000"
    assert first.goal == "put a mug in fridge"


def test_all_types_come_evenly_or_one_alone(upstream):
    kinds = Counter(read_key(task)[0] for task in games(upstream).tasks(Split.DEV))
    assert kinds == Counter(dict.fromkeys(TASK_TYPES, 10))
    alone = games(upstream, types=(TASK_TYPES[3],)).tasks(Split.DEV)
    assert {read_key(task)[0] for task in alone} == {TASK_TYPES[3]}


def test_held_out_objects_are_the_target_of_test_and_absent_from_train(upstream):
    source = games(upstream, hold_out_objects=True)
    words = {
        split: {source._sketch(*read_key(task), split).thing for task in source.tasks(split)}
        for split in Split
    }
    assert words[Split.TRAIN].isdisjoint(words[Split.TEST] | words[Split.DEV])
    for task in source.tasks(Split.TRAIN)[:30]:
        problem = source.read(task).problem
        assert not any(f"{thing}Type" in problem for thing in words[Split.TEST])


def test_asking_for_more_than_there_is_says_how_many_there_are(upstream):
    source = games(
        upstream,
        types=("pick_heat_then_place_in_recep",),
        size=Size(4, 2),
        hold_out_objects=True,
        counts=((Split.DEV, 100_000),),
    )
    with pytest.raises(ConfigError, match=r"no more than \d+ dev problems"):
        source.tasks(Split.DEV)


def test_a_key_that_is_none_is_refused(upstream):
    with pytest.raises(ConfigError, match="names no generated problem"):
        games(upstream).read(Task("id", "spec", "nonsense", Split.TEST))
