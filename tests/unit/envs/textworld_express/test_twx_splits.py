import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld_express.games import FOLDS_APART, GENERATION, read_settings
from dreamgym.envs.textworld_express.java import Server
from dreamgym.envs.textworld_express.splits import FIRST_SEED, Start, owner, seeds_of
from dreamgym.errors import ConfigError, EnvCrash, EnvError
from dreamgym.files import cache_dir
from dreamgym.types import Split

SIZES = "train=150&dev=40&test=40"


def start_of(engine, task):
    game = engine.open(task)
    opening = game.reset(0)
    game.close()
    return f"{opening.task.goal}\n{opening.observation.text}"


def starts(engine, split):
    return [start_of(engine, task) for task in engine.tasks(split)]


def seed_of(task):
    return int(task.key.partition("-")[2])


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_no_first_state_is_in_two_splits(engine_of, game):
    engine = engine_of(f"twx/{game}?{SIZES}")
    found = {split: starts(engine, split) for split in Split}
    assert {split: len(texts) for split, texts in found.items()} == {
        Split.TRAIN: 150,
        Split.DEV: 40,
        Split.TEST: 40,
    }
    for one, other in combinations(found.values(), 2):
        assert not set(one) & set(other)


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_seeds_and_ids_are_never_shared(engine_of, game):
    engine = engine_of(f"twx/{game}?{SIZES}")
    tasks = [task for split in Split for task in engine.tasks(split)]
    assert len({task.id for task in tasks}) == len({seed_of(task) for task in tasks}) == 230
    for task in tasks:
        assert 0 <= seed_of(task) - FIRST_SEED[task.split] < 10_000


@pytest.mark.parametrize("game", sorted(FOLDS_APART))
def test_folds_apart_really_are(jvm, game):
    """Why these games need no drawing: hundreds of first states, none in two folds."""
    server = Server(jvm)
    server.load(game, "")
    seen = [
        {server.generate(first + seed, split.value).observation for seed in range(200)}
        for split, first in FIRST_SEED.items()
    ]
    assert not any(one & other for one, other in combinations(seen, 2))


@pytest.mark.parametrize("spec", ["coin?numLocations=4&includeDoors=0&", "simonsays?", "twc?"])
def test_a_held_out_split_holds_no_task_twice(engine_of, spec):
    engine = engine_of(f"twx/{spec}{SIZES}")
    seen = Counter()
    for task in engine.tasks(Split.TEST):
        game = engine.open(task)
        states = [game.reset(0).observation.text]
        states += [game.step(action).observation.text for action in game.expert()]
        seen["\n\n".join(states)] += 1
        game.close()
    assert max(seen.values()) == 1


def test_drawing_does_not_favour_the_rare(engine_of):
    """Filtering by "unseen in training" left 93 % of such tasks with the coin in the first room."""
    engine = engine_of("twx/coin?numLocations=6&includeDoors=0&test=100&dev=20&train=100")
    here = ["\nkitchen\ncoin\n" in start for start in starts(engine, Split.TEST)]
    assert 0.02 < sum(here) / len(here) < 0.25


@pytest.mark.slow
def test_a_game_with_few_starts_has_a_small_split(engine_of):
    engine = engine_of("twx/twc?numLocations=1&numItemsToPutAway=1&fold=train&test=100&train=50")
    tasks = engine.tasks(Split.TEST)
    assert 20 < len(tasks) < 100
    assert len(set(starts(engine, Split.TEST))) == len(tasks)


def test_one_fold_gives_shared_words_and_other_starts(engine_of):
    own = engine_of(f"twx/twc?{SIZES}")
    one = engine_of(f"twx/twc?fold=train&{SIZES}")
    assert {task.key.partition("-")[0] for task in one.tasks(Split.TEST)} == {"train"}

    def objects(engine, split):
        found = set()
        for task in engine.tasks(split):
            game = engine.open(task)
            takes = [one for one in game.reset(0).observation.admissible if one.startswith("take ")]
            found.update(takes)
            game.close()
        return found

    assert not objects(own, Split.TRAIN) & objects(own, Split.TEST)
    assert len(objects(one, Split.TRAIN) & objects(one, Split.TEST)) > 20
    assert not set(starts(one, Split.TRAIN)) & set(starts(one, Split.TEST))


def test_holding_out_by_seed_alone_scans_nothing(engine_of):
    engine = engine_of("twx/coin?holdout=seed&train=5&dev=3&test=4")
    assert [task.key for task in engine.tasks(Split.TEST)] == [
        *("test-20000", "test-20001", "test-20002", "test-20003"),
    ]


class Scanner:
    """Counts how often it is asked, like an engine whose starts repeat every `period` seeds."""

    def __init__(self, period, own=False):
        self.period, self.own, self.asked = period, own, 0

    def start(self, fold, seed):
        self.asked += 1
        return Start(f"start {seed % self.period}", self.own)

    def walk(self, fold, seed):
        return f"walk {seed % self.period}"


def listed(settings, split, scanner):
    return seeds_of(settings, split, version="1", start=scanner.start, walk=scanner.walk)


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    return read_settings(parse_spec("twx/coin?train=30&dev=10&test=10"))


def test_a_list_is_made_once_and_then_read(settings):
    scanner = Scanner(period=1000)
    first = listed(settings, Split.TEST, scanner)
    asked = scanner.asked
    assert asked > 10
    assert listed(settings, Split.TEST, scanner) == first
    assert scanner.asked == asked
    other = replace(settings, generation=(("numLocations", 3),))
    listed(other, Split.TEST, scanner)
    assert scanner.asked > asked


@pytest.mark.parametrize("content", ["", "[]", "{", '{"key": "another", "seeds": [1]}'])
def test_a_spoilt_cache_is_made_again(settings, content):
    scanner = Scanner(period=1000)
    first = listed(settings, Split.TEST, scanner)
    (path,) = cache_dir("textworld_express").iterdir()
    path.write_text(content)
    assert listed(settings, Split.TEST, scanner) == first
    assert json.loads(path.read_text())["seeds"] == list(first)


def test_a_test_split_does_not_depend_on_the_size_of_train(settings):
    small = listed(settings, Split.TEST, Scanner(period=1000))
    larger = replace(settings, counts={"train": 300, "dev": 10, "test": 10})
    assert listed(larger, Split.TEST, Scanner(period=1000)) == small


def test_train_may_repeat_itself_and_others_may_not(settings):
    scanner = Scanner(period=20)
    assert len(listed(settings, Split.TRAIN, scanner)) == 30
    held_out = listed(settings, Split.TEST, scanner)
    assert len({seed % 20 for seed in held_out}) == len(held_out) < 10


def test_every_first_state_has_one_owner_in_fixed_shares():
    shares = Counter(owner(f"state {number}") for number in range(5000))
    assert shares[Split.TRAIN] / 5000 == pytest.approx(0.6, abs=0.03)
    assert shares[Split.TEST] / 5000 == pytest.approx(0.2, abs=0.03)
    assert owner("state 1") is owner("state 1")


def test_seeds_without_a_game_are_passed_over(settings):
    scanner = Scanner(period=1000, own=True)

    def start(fold, seed):
        if seed % 2:
            raise EnvError("no locations that far apart")
        return scanner.start(fold, seed)

    found = seeds_of(settings, Split.DEV, version="1", start=start, walk=scanner.walk)
    assert found == tuple(range(10_000, 10_020, 2))


def test_no_game_at_all_is_a_config_error(settings):
    def start(fold, seed):
        raise EnvError("no locations that far apart")

    with pytest.raises(ConfigError, match="no game can be made.*far apart"):
        seeds_of(settings, Split.DEV, version="1", start=start, walk=start)


def test_a_crash_while_scanning_is_not_taken_for_an_empty_seed(settings):
    def start(fold, seed):
        raise EnvCrash("Java ended")

    with pytest.raises(EnvCrash):
        seeds_of(settings, Split.DEV, version="1", start=start, walk=start)
