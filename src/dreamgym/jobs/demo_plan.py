"""What the demo consists of: stages, each a job with settings and a run directory of its own.

Values only. One config says all of it: sections mean what they mean elsewhere, places are filled in
here. Last in a stage stand, roughly, the seconds that it takes on two idle cores.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dreamgym.config import RunConfig
from dreamgym.envs.spec import parse_spec
from dreamgym.errors import ConfigError
from dreamgym.jobs.stages import STORE, Stage
from dreamgym.jobs.trainee import make_algorithm
from dreamgym.types import Split

HELD_STORE = "held_out.sqlite"
WALKS_PER_TASK = 5
"""Random walks of each dev task: the dream knows its rooms, and nobody learns from them."""
EXPLORED_PER_TASK = 2
"""Exploring episodes of each train task: where a dream knows little, it teaches to stay at home."""


def plan_demo(config: RunConfig, root: Path) -> tuple[Stage, ...]:
    """Return the stages in their order, none before what it needs.

    Raises `ConfigError` for settings that it could not follow, before a minute is spent on them.
    """
    _check(config)
    config = replace(config, env=replace(config.env, spec=str(parse_spec(config.env.spec))))
    return (*_grounds(config, root), *_learning(config, root))


def _check(config: RunConfig) -> None:
    rl, algo = config.rl, config.train.algo
    for wrong, setting, why in (
        (not rl.then_real, "rl.then_real = 0",
         "it ends with practice for real: give it some transitions, or practise in a dream alone "
         "with `dreamgym train --world`"),
        (rl.rounds > 1, f"rl.rounds = {rl.rounds}",
         "it practises once in the dream and once for real: leave it at 1, or go in rounds with "
         "`dreamgym train --world`"),
        (rl.switch_step > 0, f"rl.switch_step = {rl.switch_step}",
         "it leaves the dream after all of rl.steps: set those"),
        (rl.gate != "", f"rl.gate = {rl.gate}",
         "it asks an audit of its own: leave it out, and set what that must reach in [audit]"),
        (algo == "dpo", f"train.algo = {algo}",
         "it learns by trial: set grpo, ppo, rloo or gigpo, or learn from pairs with "
         "`dreamgym train --algo dpo`"),
    ):  # fmt: skip
        if wrong:
            raise ConfigError(f"the demo cannot follow {setting}: {why}")
    make_algorithm(_learner(config))


def _learner(config: RunConfig) -> RunConfig:
    """Return the settings of learning by trial; those of a demo name the clone's algorithm."""
    algo = config.train.algo if config.train.algo != "sft" else "grpo"
    return replace(config, train=replace(config.train, algo=algo))


def _grounds(config: RunConfig, root: Path) -> tuple[Stage, ...]:
    """Return what comes before any learning by trial."""
    remember = replace(config.replay, store=str(root / STORE))
    recorded = replace(config, replay=remember)
    collect, audit = config.collect, config.audit
    known = max(audit.policy_episodes, audit.episodes)
    walks = replace(
        collect, policy="random", split=Split.DEV.value, tasks=known,
        episodes=known * WALKS_PER_TASK,
    )  # fmt: skip
    held = replace(collect, split=Split.DEV.value, tasks=audit.episodes, episodes=audit.episodes)
    explored = replace(collect, policy="explore", episodes=EXPLORED_PER_TASK * collect.tasks)
    own = replace(collect, policy=str(root / "start"))
    return (
        Stage("recorded", "record real episodes of all sorts", "collect", recorded, 20),
        Stage("walks", "walk through dev tasks at random, for the audit", "collect",
              replace(recorded, collect=walks), 10),
        Stage("held", "record real episodes that only the audit sees", "collect",
              replace(config, collect=held, seed=config.seed + 100,
                      replay=replace(remember, store=str(root / HELD_STORE))), 5),
        Stage("start", "copy a few demonstrations: a weak policy", "sft",
              replace(recorded, train=replace(config.train, algo="sft")), 5),
        _judged(config, root, "start", "the start"),
        Stage("explored", "look around in all tasks, so that the dream knows them", "collect",
              replace(recorded, collect=explored), 5),
        Stage("own", "record how the weak policy itself plays", "collect",
              replace(recorded, collect=own), 30),
        Stage("dream", "fit the experience model: the dream", "fit", recorded, 110),
        Stage("audit", "audit the dream: may one train in it?", "audit",
              replace(config, audit=replace(audit, world=str(root / "dream"),
                                            data=str(root / HELD_STORE),
                                            policies=str(root / "start"))), 35),
    )  # fmt: skip


def _learning(config: RunConfig, root: Path) -> tuple[Stage, ...]:
    """Return practice in the dream, then for real, each judged for real."""
    rl = replace(config.rl, world=str(root / "dream"), gate=str(root / "audit"))
    learner = _learner(config)
    # A third real step could pay for few groups only; those, at full rate, were seen to do harm.
    onwards = rl.after_a_dream(rl.real_steps or 2, continued=rl.cooldown_steps > 0)
    return (
        Stage("dreamt", "learn by trial in the dream", "rl",
              replace(learner, rl=replace(rl, then_real=0, switch_step=0),
                      policy=replace(config.policy, model=str(root / "start"))), 150),
        _judged(config, root, "dreamt", "after the dream"),
        Stage("real", f"go on for real, on at most {rl.then_real} transitions", "rl",
              replace(learner, rl=onwards,
                      policy=replace(config.policy, model=str(root / "dreamt"))), 50),
        _judged(config, root, "real", "after sim-to-real"),
    )  # fmt: skip


def _judged(config: RunConfig, root: Path, policy: str, when: str) -> Stage:
    wanted = replace(config.eval, policy=str(root / policy))
    about = f"play {wanted.split} tasks for real: {when}"
    return Stage(f"{policy}-judged", about, "eval", replace(config, eval=wanted), 10)
