"""The arms of suites: each comes to an evaluation, by stages that it shares with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dreamgym.bench.ground import STORE, USUAL, DreamKind, Ground, settings
from dreamgym.bench.suite import Cell, Inside, Stage

NEW_TASKS = ("--curriculum", *settings("curriculum.maker=records", "curriculum.refill_every=3"))
"""Tasks by value, and known ones begun elsewhere."""
KNOWN_TASKS = ("--curriculum", *settings("curriculum.maker=none"))
"""Tasks by value, and none that is made up."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What an arm comes to: the fields of a cell without its place in the table."""

    last: Stage
    start: Stage | None = None
    audit: Stage | None = None
    gated: bool = False

    def cell(self, env: str, arm: str, seed: int) -> Cell:
        """Return the cell."""
        return Cell(env, arm, seed, self.last, self.start, self.audit, self.gated)


Arm = Callable[[Ground], Ending]


def random_arm(ground: Ground) -> Ending:
    """Act at random."""
    return Ending(ground.judged("random"))


def start_arm(ground: Ground) -> Ending:
    """Judge what all learning by trial begins with."""
    return Ending(ground.judged(ground.start()))


def sft_arm(demos: int | None = None) -> Arm:
    """Copy demonstrations for long: those of the start, or so many."""

    def arm(ground: Ground) -> Ending:
        trained = ground.clone(demos=demos or ground.place.demos, steps=ground.scale.sft_steps)
        return Ending(ground.judged(trained))

    return arm


def dpo_arm(ground: Ground) -> Ending:
    """Prefer won to lost episodes of all that the dream learns from."""
    trained = ground.stage(
        "dpo", "train", "--algo", "dpo", "--store", Inside(ground.remembered(), STORE), "--env",
        ground.place.spec, "--from", Inside(ground.start()), "--steps",
        str(ground.scale.dpo_steps), *settings("dpo.threads=1"),
    )  # fmt: skip
    return Ending(ground.judged(trained))


def real_arm(algo: str) -> Arm:
    """Practise for real from the start."""

    def arm(ground: Ground) -> Ending:
        name = f"{algo}-real"
        trained = ground.trial(name, algo, "--world", "real", steps=ground.scale.real_steps)
        return Ending(ground.judged(trained))

    return arm


def dream_arm(algo: str) -> Arm:
    """Practise in the dream only."""

    def arm(ground: Ground) -> Ending:
        trained = ground.dreamt(f"{algo}-dream", algo, gate=True)
        return Ending(ground.judged(trained))

    return arm


def s2r_arm(algo: str) -> Arm:
    """Go on for real, on a small budget, from what practice in the dream left."""

    def arm(ground: Ground) -> Ending:
        dreamt = ground.dreamt(f"{algo}-dream", algo, gate=True)
        return Ending(ground.judged(ground.onwards(f"{algo}-s2r", algo, dreamt, gate=True)))

    return arm


def kind_arm(
    kind: DreamKind = USUAL,
    *words: str,
    gated: bool = False,
    audited: bool = False,
) -> Arm:
    """Learn by GRPO in one kind of dream, whatever its audit says.

    Args:
        kind: the dream.
        words: more of the training's command line.
        gated: count the start where the audit shuts the gate.
        audited: let the table tell what the audit found, and how far success rose.
    """

    def arm(ground: Ground) -> Ending:
        name = f"grpo-{kind.name}"
        last = ground.judged(ground.dreamt(name, "grpo", *words, kind=kind, gate=False))
        if not (gated or audited):
            return Ending(last)
        start = ground.judged(ground.start())
        return Ending(last, start, ground.audit(kind), gated)

    return arm


def home_arm(arm: Arm) -> Arm:
    """Learn where policies are judged, and not where the others come from."""

    def at_home(ground: Ground) -> Ending:
        return arm(replace(ground, place=ground.there or ground.place, there=None))

    return at_home
