"""The suites by name. A suite is a value; nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dreamgym.agents.policy_card import model_folder
from dreamgym.bench.arms import (
    KNOWN_TASKS,
    NEW_TASKS,
    Arm,
    dpo_arm,
    dream_arm,
    home_arm,
    kind_arm,
    random_arm,
    real_arm,
    s2r_arm,
    sft_arm,
    start_arm,
)
from dreamgym.bench.ground import USUAL, DreamKind, Ground, settings
from dreamgym.bench.place import GROUP_SIZE, SCALES, Place, Scale, find_place
from dreamgym.bench.suite import Suite
from dreamgym.errors import ConfigError, did_you_mean

T = TypeVar("T")
Makers = dict[str, Arm]
Pairs = tuple[tuple[str, str], ...]
TO = "->"
"""Between where policies learn and where they are judged, in names of columns."""
MODEL = "1m"
"""The usual size of a policy."""
MODELS = (MODEL, "3m", "10m", "smollm2")
"""Policies that need no folder; a test holds them to what `train` knows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a suite is about, its arms, which of them are compared, and where."""

    about: str
    arms: Makers
    compare: Pairs
    envs: tuple[str, ...]


TABLE1: Makers = {
    "random": random_arm,
    "start": start_arm,
    "sft": sft_arm(),
    "sft-more": sft_arm(40),
    "dpo": dpo_arm,
    "grpo-real": real_arm("grpo"),
    "grpo-dream": dream_arm("grpo"),
    "grpo-s2r": s2r_arm("grpo"),
    "ppo-real": real_arm("ppo"),
    "ppo-dream": dream_arm("ppo"),
    "ppo-s2r": s2r_arm("ppo"),
}
EFFICIENCY: Makers = {name: TABLE1[name] for name in ("grpo-real", "grpo-dream", "grpo-s2r")}

NO_HISTORY = DreamKind("no-history", fit=("dream.history=false",))
NO_REASONING = DreamKind("no-reasoning", fit=("dream.reasoning=false",))
NO_REFERENCES = DreamKind("no-references", fit=("dream.references=0",))
SAMPLED = DreamKind("sampled", play=("dream.temperature=1",))
NOT_SHARED = DreamKind("not-shared", play=("dream.temperature=1", "dream.share_answers=false"))
ENRICHED = DreamKind("enriched")
TABLE2: Makers = {
    "start": start_arm,
    "full": kind_arm(USUAL, *NEW_TASKS, gated=True),
    "no-gate": kind_arm(USUAL, *NEW_TASKS),
    "no-references": kind_arm(NO_REFERENCES, *NEW_TASKS),
    "no-reasoning": kind_arm(NO_REASONING, *NEW_TASKS),
    "no-history": kind_arm(NO_HISTORY, *NEW_TASKS),
    "no-task-generation": kind_arm(USUAL, *KNOWN_TASKS),
    "no-curriculum": kind_arm(USUAL),
    "sampled": kind_arm(SAMPLED, *NEW_TASKS),
    "no-luck-control": kind_arm(NOT_SHARED, *NEW_TASKS),
    "enriched": kind_arm(ENRICHED, *NEW_TASKS, *settings("rl.enrich=true")),
}
TRANSFER: Makers = {
    "random": random_arm,
    "start": start_arm,
    "grpo-dream": dream_arm("grpo"),
    "start-there": home_arm(start_arm),
    "sft-there": home_arm(sft_arm()),
}
CROSSINGS = {
    "coin8-marks": ("coin8-marks", "coin-marks", "map"),
    "coin8": ("coin8", "coin", "map"),
    "map-marks": ("map-marks", "coin8-marks", "coin-marks"),
    "map": ("map", "coin8", "coin"),
}
"""Where policies of a place are judged; the first is the place itself, to compare with."""

AMOUNTS, SIZES = (250, 1000, 4000, 16000), ("1m", "3m")
DATA: Makers = {
    "start": start_arm,
    **{
        f"{size}-{amount}": kind_arm(
            DreamKind(f"{size}-{amount}", model=size, transitions=amount, walks=False)
        )
        for size in SIZES
        for amount in AMOUNTS
    },
}
KINDS = (
    USUAL,
    DreamKind("data-250", transitions=250),
    DreamKind("data-1000", transitions=1000),
    DreamKind("data-4000", transitions=4000),
    DreamKind("fit-tenth", share=0.1),
    DreamKind("fit-third", share=0.33),
    NO_REFERENCES,
    NO_HISTORY,
    NO_REASONING,
    DreamKind("no-own", own=False),
    DreamKind("few-refusals", fit=("fit.refused_share=0.1",)),
    DreamKind("no-grounding", play=("dream.grounding=false",)),
    DreamKind("no-ledger", play=("dream.ledger=false",)),
)
"""Experience models of different quality."""


def _compared(algo: str) -> Pairs:
    return (
        (f"{algo}-real", "start"), (f"{algo}-dream", "start"), (f"{algo}-dream", "sft"),
        (f"{algo}-dream", "sft-more"), (f"{algo}-dream", "dpo"), (f"{algo}-dream", f"{algo}-real"),
        (f"{algo}-s2r", f"{algo}-real"), (f"{algo}-s2r", f"{algo}-dream"),
    )  # fmt: skip


SUITES = {
    "table1": Plan(
        "The paper's Table 1 in small: random, the start of all learning by trial, SFT, DPO, and "
        "GRPO and PPO for real, in a dream (no online real transitions), and in a dream first, "
        "then for real.",
        TABLE1,
        (("sft", "start"), ("sft-more", "start"), *_compared("grpo"), *_compared("ppo")),
        ("coin8-marks", "map-marks", "twc", "alfworld"),
    ),
    "table2": Plan(
        "Ablations of GRPO in the dream (Table 2). `full` has the gate: where its audit shuts it, "
        "the start counts, since nobody would have trained. All others count whatever their audits "
        "say, and are compared with `no-gate`; `no-luck-control` also with `sampled`, which draws "
        "its answers as freely and shares them. Replay enrichment is off but in `enriched`.",
        TABLE2,
        (
            ("no-gate", "full"), ("no-gate", "start"),
            *((name, "no-gate") for name in TABLE2 if name not in ("start", "full", "no-gate")),
            ("no-luck-control", "sampled"),
        ),
        ("coin8-marks", "map-marks"),
    ),
    "efficiency": Plan(
        "Success against online real transitions and time: for real, in a dream, and in a dream "
        "first, then for real (Figure 3).",
        EFFICIENCY,
        (("grpo-dream", "grpo-real"), ("grpo-s2r", "grpo-real")),
        ("coin8-marks", "map-marks"),
    ),
    "transfer": Plan(
        "Learnt in one game, judged in another (Figure 3, middle): the start and what learnt in "
        "its dream, beside clones of demonstrations of the other game.",
        TRANSFER,
        (("grpo-dream", "start"), ("grpo-dream", "start-there"), ("grpo-dream", "sft-there")),
        ("coin8-marks", "map-marks"),
    ),
    "data": Plan(
        "Success after learning in the dream, by the real transitions that it is made of (about; "
        "half of them by the start) and by the size of the experience model (Figure 5). No gate; "
        "what is not counted, the dream does not remember either. The start is the same for all "
        "and knows the words of the usual record, which is what offline counts.",
        DATA,
        (
            ("1m-16000", "1m-250"), ("3m-16000", "3m-250"),
            *((f"3m-{amount}", f"1m-{amount}") for amount in AMOUNTS),
            *((f"1m-{amount}", "start") for amount in AMOUNTS),
        ),
        ("map-marks", "alfworld"),
    ),
    "fidelity-vs-transfer": Plan(
        "Many experience models of different quality, each audited with the start, a policy "
        "trained in each whatever its audit says: which audit figure predicts the rise in real "
        "success?",
        {kind.name: kind_arm(kind, audited=True) for kind in KINDS},
        tuple((kind.name, USUAL.name) for kind in KINDS[1:]),
        ("coin8-marks", "map-marks"),
    ),
}  # fmt: skip


def make_suite(
    name: str,
    scale: str = "small",
    *,
    envs: Sequence[str] = (),
    arms: Sequence[str] = (),
    seeds: Sequence[int] = range(5),
    models: Sequence[str] = (MODEL,),
    gate: bool = True,
) -> Suite:
    """Return a suite, or the part of it that is wanted.

    Args:
        name: see `SUITES`.
        scale: see `SCALES`.
        envs: short names or specs; nothing means all of the suite. Of `transfer` where policies
            learn, or both places as `coin8->map`.
        arms: nothing means all of the suite.
        seeds: of everything that is drawn.
        models: sizes of the policy; with more or others than the usual one, columns name them.
        gate: whether dreams must pass their audits, where arms have a gate at all.
    """
    plan = _chosen(SUITES, name, "suite")
    size = _chosen(SCALES, scale, "scale")
    size = size if gate else replace(size, gate=False)
    for arm in arms:
        _chosen(plan.arms, arm, f"arm of {name}")
    for model in models:
        if model not in MODELS and model_folder(Path(model)) is None:
            hint = did_you_mean(model, MODELS)
            raise ConfigError(f"no model '{model}', nor a folder of one.{hint}")
    wanted = [arm for arm in plan.arms if not arms or arm in arms]
    # By name, since one that is named twice is still one observation of each seed.
    columns = {
        one[0]: one
        for env in envs or plan.envs
        for one in _columns(env, crossing=name == "transfer")
    }
    _check_budgets(wanted, [here for _, here, _ in columns.values()], size)
    named = tuple(models) != (MODEL,)
    cells = tuple(
        plan.arms[arm](Ground(here, seed, size, model, there)).cell(
            f"{column} {model}" if named else column, arm, seed
        )
        for model in models
        for column, here, there in columns.values()
        for seed in seeds
        for arm in wanted
    )
    kept = tuple(pair for pair in plan.compare if set(pair) <= set(wanted))
    return Suite(name, plan.about, cells, kept)


def learnt_in(column: str) -> tuple[str, bool]:
    """Return where the policies of a column learnt, and whether they are judged there as well."""
    where, _, model = column.partition(" ")
    here, _, there = where.partition(TO)
    return f"{here} {model}".strip(), there in ("", here)


def _check_budgets(arms: Sequence[str], places: Sequence[Place], scale: Scale) -> None:
    """Refuse sim-to-real where a sixteenth of real practice buys nothing: before all else."""
    if not any(arm.endswith("-s2r") for arm in arms):
        return
    for place in places:
        if not scale.pays(place):
            raise ConfigError(
                f"{scale.budget(place)} real transitions, a sixteenth of what real practice has at "
                f"scale {scale.name}, do not pay for one group of {GROUP_SIZE} episodes in "
                f"{place.name}: take a larger --scale, or leave sim-to-real out with --arm"
            )


def _columns(env: str, *, crossing: bool) -> list[tuple[str, Place, Place | None]]:
    """Return columns of a table with where policies learn, and where they are judged instead."""
    if not crossing:
        place = find_place(env)
        return [(place.name, place, None)]
    source, to, target = env.partition(TO)
    here = find_place(source)
    targets = (target,) if to else CROSSINGS.get(source, ())
    if not targets:
        raise ConfigError(
            f"where is a policy of '{env}' to be judged? Name both, as --env '{env}{TO}map'"
        )
    found = [find_place(one) for one in targets]
    return [(f"{here.name}{TO}{there.name}", here, there) for there in found]


def _chosen(known: Mapping[str, T], name: str, what: str) -> T:
    if name not in known:
        raise ConfigError(f"unknown {what} '{name}'.{did_you_mean(name, known)}")
    return known[name]
