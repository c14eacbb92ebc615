"""The arms of the paper's Table 1 as chains of stages, from what is recorded to a judged policy.

All arms of a cell share what is recorded, the warm start, the dream and its audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dreamgym.bench.suite import Inside, Stage

STORE = "experience.sqlite"


@dataclass(frozen=True, slots=True)
class Place:
    """An environment of a suite."""

    name: str
    spec: str
    max_steps: int
    """Turns after which an episode is cut off, everywhere."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything. One value per suite and size, so that a table says what it is of."""

    name: str
    train_tasks: int
    train_episodes: int
    dev_tasks: int
    walks: int
    """Random episodes of dev tasks that the dream may remember; the fit never sees them."""
    held: int
    """Episodes that audits look at."""
    demos: int
    fit_steps: int
    sft_steps: int
    dpo_steps: int
    rl_steps: int
    """In a dream, and before reality."""
    real_steps: int
    """For real, where that is all of it."""
    then_real: int
    """Real transitions of sim-to-real."""
    judged: int
    """Held-out real episodes per seed."""
    gate: bool = True
    """Whether a dream must pass its audit; off at sizes at which none could."""
    look_every: int = 10
    look_episodes: int = 50
    quick: tuple[str, ...] = ()
    """Settings of every training and fit."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What an arm stands on: an environment, a seed, a size."""

    place: Place
    seed: int
    scale: Scale

    def stage(self, name: str, *words: str | Inside, after: tuple[Stage, ...] = ()) -> Stage:
        """Return a stage under this seed."""
        folder = f"{self.place.name}-{self.seed}/{name}"
        return Stage(folder, (*words, "--seed", str(self.seed)), after)

    def collect(self, name: str, *words: str | Inside, after: tuple[Stage, ...] = ()) -> Stage:
        """Return a stage that records experience."""
        return self.stage(
            name, "collect", "--env", self.place.spec, "--set",
            f"collect.max_steps={self.place.max_steps}", *words, after=after,
        )  # fmt: skip

    def recorded(self) -> Stage:
        """Return the stage that records what everybody learns from; its store is in its folder."""
        return self.collect(
            "recorded", "--policy", "mixed", "--tasks", str(self.scale.train_tasks), "--episodes",
            str(self.scale.train_episodes),
        )  # fmt: skip

    def walks(self) -> Stage:
        """Return the stage that adds random walks of dev tasks to the store."""
        return self.collect(
            "walks", "--policy", "random", "--split", "dev", "--tasks", str(self.scale.dev_tasks),
            "--episodes", str(self.scale.walks), "--store", Inside(self.recorded(), STORE),
        )  # fmt: skip

    def held(self) -> Stage:
        """Return the stage that records what audits look at, in a store of its own."""
        return self.collect(
            "held", "--policy", "mixed", "--split", "dev", "--tasks", str(self.scale.dev_tasks),
            "--episodes", str(self.scale.held),
        )  # fmt: skip

    def start(self) -> Stage:
        """Return the warm start: behaviour cloning of a few demonstrations."""
        return self.stage(
            "start", "train", "--algo", "sft", "--store", Inside(self.recorded(), STORE),
            "--env", self.place.spec, "--demos", str(self.scale.demos), "--steps",
            str(self.scale.sft_steps), "--set", "train.threads=1", *self._quick("train", "policy"),
            after=(self.walks(),),
        )  # fmt: skip

    def dream(self) -> Stage:
        """Return the fit of the experience model."""
        return self.stage(
            "dream", "fit", "--store", Inside(self.recorded(), STORE), "--env", self.place.spec,
            "--steps", str(self.scale.fit_steps), "--set", "fit.threads=1", *self._quick("fit"),
            after=(self.walks(),),
        )  # fmt: skip

    def audit(self) -> Stage:
        """Return the audit of the dream with the warm policy."""
        return self.stage(
            "audit", "audit", "--world", Inside(self.dream()), "--data", Inside(self.held(), STORE),
            "--policy", Inside(self.start()), "--episodes", str(self.scale.held), "--set",
            f"audit.policy_episodes={min(100, self.scale.held)}", "--set",
            f"audit.max_steps={self.place.max_steps}",
        )  # fmt: skip

    def trial(self, name: str, algo: str, *words: str | Inside, steps: int) -> Stage:
        """Return a training by trial from the warm start."""
        scale = self.scale
        return self.stage(
            name, "train", "--algo", algo, "--from", Inside(self.start()), "--steps", str(steps),
            *words, "--set", "rl.threads=1", "--set", f"rl.max_steps={self.place.max_steps}",
            "--set", f"rl.eval_every={scale.look_every}", "--set",
            f"rl.eval_episodes={scale.look_episodes}", *self._quick("rl"),
        )  # fmt: skip

    def dreamt(self, name: str, algo: str, *words: str | Inside) -> Stage:
        """Return a training in the dream, behind its gate where there is one."""
        gate = Inside(self.audit()) if self.scale.gate else "off"
        return self.trial(
            name, algo, "--world", Inside(self.dream()), "--gate", gate, *words,
            steps=self.scale.rl_steps,
        )  # fmt: skip

    def judged(self, name: str, policy: str | Inside) -> Stage:
        """Return the evaluation of a policy on held-out real tasks."""
        return self.stage(
            f"judged-{name}", "eval", "--env", self.place.spec, "--policy", policy, "--split",
            "test", "--episodes", str(self.scale.judged), "--set",
            f"eval.max_steps={self.place.max_steps}", "--set", "eval.overlap=false",
        )  # fmt: skip

    def _quick(self, *sections: str) -> tuple[str, ...]:
        chosen = [one for one in self.scale.quick if one.partition(".")[0] in sections]
        return tuple(word for setting in chosen for word in ("--set", setting))


Arm = Callable[[Ground], Stage]
"""Returns the evaluation at the end of an arm."""


def random_arm(ground: Ground) -> Stage:
    """Act at random."""
    return ground.judged("random", "random")


def sft_arm(ground: Ground) -> Stage:
    """Copy demonstrations: also the start of all others."""
    return ground.judged("sft", Inside(ground.start()))


def dpo_arm(ground: Ground) -> Stage:
    """Prefer won to lost recorded episodes."""
    trained = ground.stage(
        "dpo", "train", "--algo", "dpo", "--store", Inside(ground.recorded(), STORE), "--env",
        ground.place.spec, "--from", Inside(ground.start()), "--steps",
        str(ground.scale.dpo_steps), "--set", "dpo.threads=1",
    )  # fmt: skip
    return ground.judged("dpo", Inside(trained))


def real_arm(algo: str) -> Arm:
    """Practise for real from the start."""

    def arm(ground: Ground) -> Stage:
        name = f"{algo}-real"
        trained = ground.trial(name, algo, "--world", "real", steps=ground.scale.real_steps)
        return ground.judged(name, Inside(trained))

    return arm


def dream_arm(algo: str) -> Arm:
    """Practise in the dream only."""

    def arm(ground: Ground) -> Stage:
        return ground.judged(f"{algo}-dream", Inside(ground.dreamt(f"{algo}-dream", algo)))

    return arm


def s2r_arm(algo: str) -> Arm:
    """Practise in the dream, then for real on a small budget."""

    def arm(ground: Ground) -> Stage:
        name = f"{algo}-s2r"
        trained = ground.dreamt(name, algo, "--then-real", str(ground.scale.then_real))
        return ground.judged(name, Inside(trained))

    return arm
