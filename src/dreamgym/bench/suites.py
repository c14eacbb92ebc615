"""The suites by name, and their sizes. A suite is a value; nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from dreamgym.bench.arms import (
    Arm,
    Ground,
    Place,
    Scale,
    dpo_arm,
    dream_arm,
    random_arm,
    real_arm,
    s2r_arm,
    sft_arm,
)
from dreamgym.bench.suite import Cell, Suite
from dreamgym.errors import ConfigError, did_you_mean

PLACES = {
    one.name: one
    for one in (
        Place("coin", "twx/coin?numLocations=5&includeDoors=0", 20),
        Place(
            "map",
            "twx/mapreader?numLocations=6&maxDistanceApart=3&maxDistractorItemsPerLocation=1"
            "&includeDoors=0",
            25,
        ),
        Place(
            "cook",
            "twx/cookingworld?numLocations=3&numIngredients=2&numDistractorItems=2&includeDoors=0",
            30,
        ),
        Place("alfworld", "alfworld/generated?size=small", 40),
    )
}
"""Environments by short name; any other spec may be named as it is."""
OTHER_STEPS = 25
"""Turns of an episode in an environment that is named by its spec."""

SCALES = {
    one.name: one
    for one in (
        Scale(
            "tiny", train_tasks=12, train_episodes=48, dev_tasks=8, walks=8, held=8, demos=6,
            fit_steps=8, sft_steps=10, dpo_steps=2, rl_steps=2, real_steps=2, then_real=200,
            judged=8, gate=False, look_every=2, look_episodes=4,
            quick=("rl.groups=2", "rl.group_size=4", "rl.warmup_steps=1", "fit.tokens_per_step=768",
                   "train.tokens_per_step=768", "policy.vocabulary=600", "fit.eval_every=8"),
        ),
        Scale(
            "small", train_tasks=300, train_episodes=1500, dev_tasks=100, walks=500, held=150,
            demos=40, fit_steps=500, sft_steps=200, dpo_steps=40, rl_steps=30, real_steps=60,
            then_real=3000, judged=100,
        ),
        Scale(
            "full", train_tasks=300, train_episodes=1500, dev_tasks=100, walks=500, held=150,
            demos=40, fit_steps=500, sft_steps=200, dpo_steps=40, rl_steps=60, real_steps=120,
            then_real=5000, judged=200, look_episodes=100,
        ),
    )
}  # fmt: skip
"""Sizes. Real practice gets far more transitions than sim-to-real: the table shows how many."""

T = TypeVar("T")
Makers = dict[str, Arm]
TABLE1: Makers = {
    "random": random_arm,
    "sft": sft_arm,
    "dpo": dpo_arm,
    "grpo-real": real_arm("grpo"),
    "grpo-dream": dream_arm("grpo"),
    "grpo-s2r": s2r_arm("grpo"),
    "ppo-real": real_arm("ppo"),
    "ppo-dream": dream_arm("ppo"),
    "ppo-s2r": s2r_arm("ppo"),
}
EFFICIENCY: Makers = {name: TABLE1[name] for name in ("grpo-real", "grpo-dream", "grpo-s2r")}


def _compared(algo: str) -> tuple[tuple[str, str], ...]:
    return (
        (f"{algo}-dream", "sft"), (f"{algo}-dream", "dpo"), (f"{algo}-dream", f"{algo}-real"),
        (f"{algo}-s2r", f"{algo}-real"), (f"{algo}-s2r", f"{algo}-dream"),
    )  # fmt: skip


SUITES: dict[str, tuple[str, Makers, tuple[tuple[str, str], ...]]] = {
    "table1": (
        "The paper's Table 1 in small: random, SFT, DPO, and GRPO and PPO for real, in a dream "
        "(no online real transitions), and in a dream first, then for real.",
        TABLE1,
        (*_compared("grpo"), *_compared("ppo")),
    ),
    "efficiency": (
        "Success against online real transitions and time: for real, in a dream, and in a dream "
        "first, then for real (Figure 3).",
        EFFICIENCY,
        (("grpo-dream", "grpo-real"), ("grpo-s2r", "grpo-real")),
    ),
}
"""What each suite is about, its arms, and which of them are compared."""
ENVS = {"table1": ("coin", "map", "cook", "alfworld"), "efficiency": ("coin", "map")}


def make_suite(
    name: str,
    scale: str = "small",
    *,
    envs: Sequence[str] = (),
    arms: Sequence[str] = (),
    seeds: int = 5,
) -> Suite:
    """Return a suite, or the part of it that is wanted.

    Args:
        name: see `SUITES`.
        scale: see `SCALES`.
        envs: short names or specs; nothing means all of the suite.
        arms: nothing means all of the suite.
        seeds: 0 up to this.
    """
    about, known, compared = _chosen(SUITES, name, "suite")
    size = _chosen(SCALES, scale, "scale")
    for arm in arms:
        _chosen(known, arm, f"arm of {name}")
    wanted = [arm for arm in known if not arms or arm in arms]
    cells = tuple(
        Cell(place.name, arm, seed, known[arm](Ground(place, seed, size)))
        for place in map(_place, envs or ENVS[name])
        for seed in range(seeds)
        for arm in wanted
    )
    kept = tuple(pair for pair in compared if set(pair) <= set(wanted))
    return Suite(name, about, cells, kept)


def _place(name: str) -> Place:
    if name in PLACES:
        return PLACES[name]
    if "/" not in name:
        raise ConfigError(f"unknown environment '{name}'.{did_you_mean(name, PLACES)}")
    short = "".join(char if char.isalnum() else "-" for char in name.partition("?")[0])
    return Place(short, name, OTHER_STEPS)


def _chosen(known: Mapping[str, T], name: str, what: str) -> T:
    if name not in known:
        raise ConfigError(f"unknown {what} '{name}'.{did_you_mean(name, known)}")
    return known[name]
