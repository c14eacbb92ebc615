"""A policy that can speak but does not know the way, for tests of the loop, and where it walks."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace

from dreamgym.agents import Behaviour
from dreamgym.agents.policy import Manner, PolicyAgent
from dreamgym.agents.policy_prompt import MARKS
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.start import set_start_weights
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import GroupPlan
from dreamgym.testing import CorridorWorld
from dreamgym.train.critic import make_critic
from dreamgym.train.loop import LoopPlan, Practice, Trainee, UniformTasks
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import Source, Split

ANSWERER = Answerer(Source.REAL, "corridor 1", "m")
WORDS = ("Room 0 1 2 3 of . Take the coin in room", "east", "west", "take coin", "You hold it")
PLAY = GroupPlan(members=6, max_steps=5, concurrency=64, seed=5)


class Walker:
    """A small model whose agents choose among what the corridor lists."""

    def __init__(self, *, seed: int = 0) -> None:
        self.spelling = train_word_tokenizer(
            list(WORDS), special=MARKS[:-1], vocab_size=300, min_count=1
        )
        shape = LlamaShape(
            self.spelling.vocab_size, hidden=32, layers=1, heads=2, inner=64, positions=256
        )
        self.model = Llama(shape)
        set_start_weights(self.model, seed=seed, copying=False)
        self.llm = LocalLLM(self.model, self.spelling, tick_seconds=0.0)
        self.writer = CompactWriter(self.spelling, 256, 4)

    def behaviour(self, temperature: float = 1.0) -> Behaviour:
        manner = Manner(temperature=temperature, options=lambda now: now.admissible or ())
        return Behaviour(
            "walker", lambda env, seed: PolicyAgent(self.llm, self.writer, seed, manner=manner)
        )

    def trainee(self, algorithm, objective, *, rate: float = 1e-2) -> Trainee:
        learner = Learner(
            self.model,
            UpdatePlan(epochs=2, minibatches=2, learning_rate=rate),
            critic=make_critic(self.model) if algorithm.needs_values else None,
            reference=copy.deepcopy(self.model) if objective.kl_coefficient else None,
        )
        return Trainee(self.behaviour(), self.writer, learner, algorithm, objective)


def corridor_tasks():
    """Corridors of one to three rooms."""
    return CorridorWorld().tasks(Split.TRAIN, 4)[1:]


def corridor(world=None) -> Practice:
    return Practice(world or CorridorWorld(), ANSWERER, UniformTasks(corridor_tasks(), seed=5))


def small_plan(steps: int, **changes) -> LoopPlan:
    plan = LoopPlan(steps, groups=6, play=PLAY, learning_rate=1e-2, warmup_steps=2, probe_every=2)
    return replace(plan, **changes)


def run(coroutine):
    return asyncio.run(coroutine)
