"""What arms stand on: the stages from what is recorded to a judged policy.

All arms of a cell share what they have in common. A stage that records more begins with a copy of
the store before it, so that no store changes once its stage is finished.
"""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.bench.place import Place, Scale
from dreamgym.bench.suite import Inside, Stage
from dreamgym.config.rl import RlConfig

STORE = "experience.sqlite"
HELD = "held"
"""The stage that records what only audits look at."""
UNKNOWN = "rl.unknown=no-reward"
"""Where episodes that a dream gives up do not count at all, policies learn to be given up."""


@dataclass(frozen=True, slots=True)
class DreamKind:
    """One way to make a dream of a place; the defaults are the usual one."""

    name: str = "full"
    model: str = "1m"
    """The size of the experience model."""
    fit: tuple[str, ...] = ()
    """Settings of the fit, after those of the place."""
    play: tuple[str, ...] = ()
    """How it is dreamt: settings of audits and of practice in it."""
    share: float = 1.0
    """Of the usual updates."""
    own: bool = True
    """Whether episodes of the start itself are on record."""
    transitions: int = 0
    """Steps of train tasks on record, about, half of them by the start; 0 means the usual."""
    walks: bool = True
    """Whether it remembers random walks of dev tasks: audits of dev tasks need them."""


USUAL = DreamKind()


@dataclass(frozen=True, slots=True)
class Ground:
    """An environment, a seed, a size, and the size of the policy."""

    place: Place
    seed: int
    scale: Scale
    model: str = "1m"
    there: Place | None = None
    """Where policies are judged, if elsewhere."""

    def stage(self, name: str, *words: str | Inside, seed: int | None = None) -> Stage:
        """Return a stage under this seed."""
        folder = f"{self.place.name}-{self.seed}/{name}"
        return Stage(folder, (*words, "--seed", str(self.seed if seed is None else seed)))

    def collect(
        self, name: str, *words: str | Inside, onto: Stage | None = None, seed: int | None = None
    ) -> Stage:
        """Return a stage that records experience, beside what another has recorded."""
        before = () if onto is None else ("--begin-with", Inside(onto, STORE))
        turns = self.place.recorded_turns or self.place.turns
        return self.stage(
            name, "collect", "--env", self.place.spec, "--set", f"collect.max_steps={turns}",
            *words, *before, seed=seed,
        )  # fmt: skip

    def recorded(self, transitions: int = 0) -> Stage:
        """Return the stage that records what everybody learns from, or a smaller part of it."""
        count = round(transitions / 2 / self.place.lengths[0]) or self.place.episodes
        return self.collect("recorded", "--policy", "mixed", *self._of_train(count))

    def _of_train(self, episodes: int) -> tuple[str, ...]:
        tasks = min(self.place.tasks, self.scale.most_tasks)
        return "--tasks", str(tasks), "--episodes", str(min(episodes, self.scale.most_episodes))

    def _of_dev(self, episodes: int) -> tuple[str, ...]:
        tasks = str(self.scale.dev_tasks)
        return "--split", "dev", "--tasks", tasks, "--episodes", str(episodes)

    def remembered(self, kind: DreamKind = USUAL) -> Stage:
        """Return the stage with all that a dream learns from and remembers with."""
        last = self.recorded(kind.transitions)
        if kind.walks:
            last = self.collect(
                "walks", "--policy", "random", *self._of_dev(self.scale.walks), onto=last
            )
        if self.scale.explored and not kind.transitions:
            count = self.scale.explored * self.place.tasks
            last = self.collect(
                "explored", "--policy", "explore", *self._of_train(count), onto=last
            )
        if not (kind.own and self.place.own):
            return last
        count = round(kind.transitions / 2 / self.place.lengths[1]) or self.place.own
        who = Inside(self.start())
        return self.collect("own", "--policy", who, *self._of_train(count), onto=last)

    def held(self) -> Stage:
        """Return the stage that records what audits look at, in a store of its own."""
        words = ("--policy", "mixed", *self._of_dev(self.scale.held))
        return self.collect(HELD, *words, seed=self.seed + 100)

    def start(self) -> Stage:
        """Return the policy that all learning by trial begins with: a few demonstrations copied."""
        return self.clone(demos=self.place.demos, steps=self.place.clone_steps)

    def clone(self, *, demos: int, steps: int) -> Stage:
        """Return a behaviour cloning."""
        return self.stage(
            "clone", "train", "--algo", "sft", "--store", Inside(self.recorded(), STORE), "--env",
            self.place.spec, "--model", self.model, "--demos",
            str(min(demos, self.scale.sft_demos)), "--steps",
            str(min(steps, self.scale.most_updates)),
            *settings("train.threads=1", *self.place.clone), *self._quick("train", "policy"),
        )  # fmt: skip

    def dream(self, kind: DreamKind = USUAL) -> Stage:
        """Return the fit of an experience model."""
        steps = min(round(self.place.fit_steps * kind.share), self.scale.most_updates)
        return self.stage(
            "dream", "fit", "--store", Inside(self.remembered(kind), STORE), "--env",
            self.place.spec, "--model", kind.model, "--steps", str(max(1, steps)),
            *settings("fit.threads=1", *self.place.fit, *kind.fit), *self._quick("fit"),
        )  # fmt: skip

    def audit(self, kind: DreamKind = USUAL) -> Stage:
        """Return the audit of a dream with the start."""
        held = self.scale.held
        return self.stage(
            "audit", "audit", "--world", Inside(self.dream(kind)), "--data",
            Inside(self.held(), STORE), "--policy", Inside(self.start()), "--episodes", str(held),
            *settings(f"audit.policy_episodes={min(100, held)}",
                      f"audit.max_steps={self.place.turns}", *self.place.dream, *kind.play),
        )  # fmt: skip

    def trial(
        self,
        name: str,
        algo: str,
        *words: str | Inside,
        steps: int,
        begin_with: Stage | None = None,
        last: tuple[str, ...] = (),
    ) -> Stage:
        """Return a training by trial, from the start or from another policy."""
        scale, start = self.scale, begin_with or self.start()
        cooled = [f"rl.cooldown_steps={steps // 3}"] if scale.cooled and not begin_with else []
        return self.stage(
            name, "train", "--algo", algo, "--from", Inside(start), "--steps", str(steps),
            *words,
            *settings("rl.threads=1", f"rl.max_steps={self.place.turns}",
                      *scale.practice(self.place),
                      f"rl.eval_every={scale.look_every}",
                      f"rl.eval_episodes={scale.look_episodes}", "rl.eval_greedy=false"),
            *settings(*cooled), *self._quick("rl"),
            *last,
        )  # fmt: skip

    def dreamt(
        self, name: str, algo: str, *words: str | Inside, kind: DreamKind = USUAL, gate: bool
    ) -> Stage:
        """Return a training in a dream, behind its gate or regardless of it."""
        return self.trial(
            name, algo, *self._in_dream(kind, gate), *words, steps=self.scale.rl_steps
        )

    def onwards(self, name: str, algo: str, dreamt: Stage, *, gate: bool) -> Stage:
        """Return a training that goes on for real, on a small budget, from what a dream left."""
        real = ("--then-real", str(self.scale.budget(self.place)))
        scale, usual = self.scale, RlConfig(learning_rate=self.place.rate)
        how = usual.after_a_dream(scale.s2r_steps, continued=scale.cooled)
        slow = settings(
            f"rl.switch_step={how.switch_step}", f"rl.real_steps={how.real_steps}",
            f"rl.warmup_steps={how.warmup_steps}", f"rl.learning_rate={how.learning_rate:g}",
            *(["rl.continued=true"] if how.continued else []),
        )  # fmt: skip
        return self.trial(
            name,
            algo,
            *self._in_dream(USUAL, gate),
            *real,
            steps=how.steps,
            begin_with=dreamt,
            last=slow,
        )

    def _in_dream(self, kind: DreamKind, gate: bool) -> tuple[str | Inside, ...]:
        guard = Inside(self.audit(kind)) if gate and self.scale.gate else "off"
        how = settings(*self.place.dream, *kind.play, UNKNOWN)
        return "--world", Inside(self.dream(kind)), "--gate", guard, *how

    def judged(self, policy: str | Stage) -> Stage:
        """Return the evaluation of a policy on held-out real tasks."""
        place = self.there or self.place
        name = policy if isinstance(policy, str) else policy.name.rpartition("/")[2]
        who = policy if isinstance(policy, str) else Inside(policy)
        return self.stage(
            f"judged-{name}", "eval", "--env", place.spec, "--policy",
            who, "--split", "test", "--episodes",
            str(self.scale.judged),
            *settings(f"eval.max_steps={place.turns}", "eval.overlap=false"),
        )  # fmt: skip

    def _quick(self, *sections: str) -> tuple[str, ...]:
        return settings(*(one for one in self.scale.quick if one.partition(".")[0] in sections))


def settings(*chosen: str) -> tuple[str, ...]:
    """Return settings as words of a command line."""
    return tuple(word for setting in chosen for word in ("--set", setting))
