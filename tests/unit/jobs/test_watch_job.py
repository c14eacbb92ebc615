"""The watch over a dream: the policy's dreams of now, told again for real."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from stairs_engine import HEIGHT, Engine, dreaming, look

from dreamgym.agents.policy_card import Choose, PolicyCard
from dreamgym.agents.policy_prompt import MARKS
from dreamgym.config import load_config
from dreamgym.envs.world import WorldInfo
from dreamgym.errors import ConfigError, EnvError
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style
from dreamgym.experience.world import DreamWorld
from dreamgym.jobs.practice import make_probe
from dreamgym.jobs.watch import make_watch
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.start import set_start_weights
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.replay import open_store
from dreamgym.types import Observation, Opening, Source, Split

ENGINE = Engine("stairs")
TASKS = tuple(ENGINE.tasks(Split.TRAIN))


class Stairs:
    """The staircase as a real world, in this process. `broken` stairs refuse every action."""

    def __init__(self, *, broken=False, gone=False, closed=()):
        self.broken, self.gone, self.closed, self.steps = broken, gone, closed, 0

    async def tasks(self, split):
        return tuple(ENGINE.tasks(split))

    async def open(self, task):
        if task.key in self.closed:
            raise EnvError("closed today")
        return Climb(ENGINE.open(task), self)

    async def info(self):
        return WorldInfo("stairs", "stairs 1", "plain")


class Climb:
    def __init__(self, game, stairs):
        self.game, self.stairs = game, stairs

    async def reset(self, seed):
        return self.game.reset(seed)

    async def step(self, action):
        if self.stairs.gone:
            raise EnvError("the stairs are gone")
        self.stairs.steps += 1
        return self.game.step("sing" if self.stairs.broken else action)

    async def close(self):
        pass


async def opening(task):
    return Opening(replace(task, goal="climb to the top"), Observation(look(0)))


@pytest.fixture(scope="module")
def policy():
    """A policy that says up and nothing else, since it knows no other word to begin with."""
    texts = [*map(look, range(HEIGHT + 1)), "climb to the top", "up"]
    words = train_word_tokenizer(texts, special=MARKS[:-1], vocab_size=300, min_count=1)
    model = Llama(LlamaShape(words.vocab_size, hidden=16, layers=1, heads=2, inner=32))
    set_start_weights(model, seed=0, copying=False)
    up = {"kind": "up", "gaps": [], "free_hands": False}
    return LocalLLM(model, words, tick_seconds=0.0), {"frames": [up], "layout": [], "names": []}


def read(policy, world, *more, store=None, step=10):
    llm, knows = policy
    card = PolicyCard("stairs", choose=Choose.KNOWN, knows=knows)
    config = load_config(
        settings=["rl.world='dream'", "rl.max_steps=4", "rl.watch_episodes=8", *more]
    )
    dreamt = DreamWorld(
        ExperienceModel(dreaming(), style=Style.FULL), openings=opening, ledger=False
    )
    dream = SimpleNamespace(world=dreamt, tasks=lambda split: TASKS)
    return asyncio.run(make_watch(config, dream, world, card=card, llm=llm, store=store)(step))


def test_a_look_at_reality_says_how_many_episodes_counted(policy):
    llm, knows = policy
    card = PolicyCard("stairs", choose=Choose.KNOWN, knows=knows)
    config = load_config(settings=["rl.eval_episodes=50", "rl.max_steps=4"])

    async def look_once():
        probe = await make_probe(config, Stairs(closed=("1000", "1004")), card, llm)
        return await probe()

    figures = asyncio.run(look_once()).figures
    for ending in ("", "_greedy"):
        assert figures[f"real/episodes{ending}"] == len(ENGINE.tasks(Split.DEV)) - 2
        assert figures[f"real/failed{ending}"] == 2


def test_an_honest_dream_is_found_honest(policy):
    world = Stairs()
    reading = read(policy, world)
    # Six tasks, eight episodes: three steps up each, all of them won.
    assert (reading.precision, reading.wins, reading.transitions) == (1.0, 8, 24)
    assert reading.transitions == world.steps
    assert reading.figures["gap/dream_minus_real"] == 0.0
    assert reading.figures["gap/refused"] == 0.0
    assert reading.figures["gap/outcome_agreement"] == 1.0


def test_a_dream_that_forgives_what_reality_refuses_is_found_out(policy):
    reading = read(policy, Stairs(broken=True))
    assert (reading.precision, reading.wins) == (0.0, 8)
    assert reading.figures["gap/dream_minus_real"] == 1.0
    assert reading.figures["gap/refused"] == -1.0


def test_a_watch_that_sees_nothing_says_so(policy):
    with pytest.raises(ConfigError, match="every episode of the watch failed: the stairs are gone"):
        read(policy, Stairs(gone=True))


def test_only_practised_tasks_are_told_again(policy):
    reading = read(policy, Stairs(), "rl.tasks='stairs#4'", "rl.watch_episodes=2")
    assert reading.wins == 2


def test_what_is_told_again_for_real_is_kept_as_real_experience(policy, tmp_path):
    with open_store(tmp_path / "kept.sqlite") as store:
        reading = read(policy, Stairs(broken=True), store=store, step=10)
        read(policy, Stairs(broken=True), store=store, step=10)  # again, after a crash
        first = list(store.trajectories())
        read(policy, Stairs(), store=store, step=20)
        later = list(store.trajectories())[len(first) :]
    assert len(first) == len(later) == 8
    assert sum(len(one.steps) for one in first) == reading.transitions
    for one, step, won in ((first[0], 10, False), (later[0], 20, True)):
        made = one.provenance
        assert (made.source, made.behaviour) == (Source.REAL, f"sft@watch{step}")
        assert (made.engine, made.mapper) == ("stairs 1", "plain")
        assert (one.task.goal, one.task.first_state) == ("climb to the top", None)
        assert one.success is won


def test_an_episode_that_broke_is_not_kept(policy, tmp_path):
    with open_store(tmp_path / "kept.sqlite") as store:
        with pytest.raises(ConfigError, match="every episode"):
            read(policy, Stairs(gone=True), store=store)
        assert list(store.trajectories()) == []
