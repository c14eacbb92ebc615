"""Behaviour policies: expert, random, explore, noisy, probe, wander, and their mix.

They act in real environments to record experience, and serve as yardsticks in evaluation. All are
built on the engine's own expert and know no environment. An agent is made anew for every episode,
from that episode's environment and seed, so that results never depend on what else is running.
"""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dreamgym.agents.near_miss import near_miss
from dreamgym.errors import AgentError, ConfigError, did_you_mean
from dreamgym.protocols import Agent, Env
from dreamgym.types import Action, Observation, Step, Task, derive_seed

AgentFactory = Callable[[Env, int], Agent]
"""Makes the agent of one episode from its environment and the episode's seed."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A named way to act."""

    name: str
    make: AgentFactory
    settings: str = ""
    """What else decides how it acts; part of the id of every episode that it plays."""


class Planner:
    """Follows the engine's expert, asking again only after something else was done."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._plan: tuple[str, ...] = ()
        self._position = -1

    async def plan(self, past: Sequence[Step]) -> tuple[str, ...]:
        """Return the actions that win from here; empty where the engine does not know."""
        followed = (
            self._position == len(past) - 1
            and self._plan
            and past[-1].action.text == self._plan[0]
            and not past[-1].result.refused
        )
        self._plan = self._plan[1:] if followed else ()
        if not self._plan:
            self._plan = await self._env.expert()
        self._position = len(past)
        return self._plan


class ExpertAgent:
    """Does what the engine's expert says.

    Where the expert knows no way it does anything else: such a task is lost, as a rule, and counts.
    """

    def __init__(self, env: Env, seed: int) -> None:
        self._planner = Planner(env)
        self._rng = random.Random(seed)

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return the next action of the plan."""
        plan = await self._planner.plan(past)
        return Action(plan[0] if plan else _any_admissible(self._rng, task, now))


class RandomAgent:
    """Does anything that the environment accepts."""

    def __init__(self, env: Env, seed: int) -> None:
        self._rng = random.Random(seed)

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return an admissible action, each as likely."""
        return Action(_any_admissible(self._rng, task, now))


class ExploringAgent:
    """Does what it has done least in the same state: a record then knows what lies behind it."""

    def __init__(self, env: Env, seed: int) -> None:
        self._rng = random.Random(seed)
        self._done: Counter[tuple[str, str]] = Counter()

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return one of the admissible actions that were done least here, each as likely."""
        text = _any_admissible(self._rng, task, now, self._done)
        self._done[now.text, text] += 1
        return Action(text)


class NoisyAgent:
    """An expert with a loose hand: now and then it does something else, then finds its way back."""

    def __init__(self, env: Env, seed: int, *, noise: float) -> None:
        self._planner = Planner(env)
        self._rng = random.Random(seed)
        self._noise = noise

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return the next action of the plan or, by chance or for want of a plan, any other."""
        if self._rng.random() >= self._noise:
            plan = await self._planner.plan(past)
            if plan:
                return Action(plan[0])
        return Action(_any_admissible(self._rng, task, now))


class ProbingAgent:
    """Another agent that keeps asking for what reality refuses."""

    def __init__(self, inner: Agent, env: Env, seed: int, *, share: float) -> None:
        self._inner = inner
        self._planner = Planner(env)
        self._rng = random.Random(derive_seed(seed, "probe"))
        self._share = share
        self._met: set[str] = set()

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return a near miss as often as the share says, otherwise what the other agent does."""
        admissible = now.admissible or ()
        self._met.update(admissible)
        if self._rng.random() < self._share:
            plan = await self._planner.plan(past)
            miss = near_miss(self._rng, admissible=admissible, known=sorted(self._met), plan=plan)
            if miss is not None:
                return Action(miss)
        return await self._inner.act(task, past, now)


def _any_admissible(
    rng: random.Random,
    task: Task,
    now: Observation,
    done: Mapping[tuple[str, str], int] = MappingProxyType({}),
) -> str:
    """Return an admissible action, one of those that were done least often in this state."""
    if not now.admissible:
        raise AgentError(f"{task.env} lists no admissible actions; use another policy there")
    least = min(done.get((now.text, one), 0) for one in now.admissible)
    return rng.choice([one for one in now.admissible if done.get((now.text, one), 0) == least])


BEHAVIOURS = ("expert", "random", "explore", "noisy", "probe", "wander", "mixed")
"""The policies that ship. `probe` and `wander` are `noisy` and `random` with near misses."""

MIX = ("expert", "noisy", "probe", "wander", "probe", "noisy", "probe")
"""One episode of each in turn, so that more than 30 % of a mixed record is refused actions."""


def make_behaviour(
    name: str, *, noise: float = 0.3, probe_share: float = 0.6
) -> Callable[[int], Behaviour]:
    """Return the function that says who acts in the episode of a given slot.

    `name` is one of `BEHAVIOURS`, or `module:function` for an `AgentFactory` of your own.
    """

    def probe(env: Env, seed: int) -> Agent:
        # A little noise of its own keeps the probe off the one path that the expert knows.
        return ProbingAgent(NoisyAgent(env, seed, noise=0.1), env, seed, share=probe_share)

    def wander(env: Env, seed: int) -> Agent:
        return ProbingAgent(RandomAgent(env, seed), env, seed, share=probe_share)

    shipped = {
        "expert": Behaviour("expert", ExpertAgent),
        "random": Behaviour("random", RandomAgent),
        "explore": Behaviour("explore", ExploringAgent),
        "noisy": Behaviour(
            "noisy", lambda env, seed: NoisyAgent(env, seed, noise=noise), f"noise={noise}"
        ),
        "probe": Behaviour("probe", probe, f"share={probe_share}"),
        "wander": Behaviour("wander", wander, f"share={probe_share}"),
    }
    if name == "mixed":
        return lambda slot: shipped[MIX[slot % len(MIX)]]
    if name in shipped:
        return lambda slot: shipped[name]
    if ":" in name:
        own = Behaviour(name, _load_factory(name))
        return lambda slot: own
    raise ConfigError(f"unknown policy '{name}'.{did_you_mean(name, BEHAVIOURS)}")


def _load_factory(name: str) -> AgentFactory:
    module, _, function = name.partition(":")
    try:
        found: AgentFactory = getattr(importlib.import_module(module), function)
    except Exception as error:  # Somebody else's module may fail in any way.
        raise ConfigError(
            f"policy '{name}' cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return found
