"""The section on learning by trial: GRPO, PPO and their kin, in a dream or for real."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dreamgym.errors import ConfigError, did_you_mean

ESTIMATORS = ("k2", "k3")
REWARDS = ("outcome", "environment")
UNKNOWN = ("left-out", "no-reward")
WATCH = ("off", "note", "stop", "return")


@dataclass(frozen=True, slots=True)
class RlConfig:
    """How a policy learns by trial. The defaults suit small models on a few cores."""

    world: str = "real"
    """Where it practises: real; the run of a `dreamgym fit`; or a model that is asked in words and
    remembers with `--store`: llm (the server of `[llm]`), smollm2, or a model folder."""
    gate: str = ""
    """An audit of that dream whose gate must be open; off trains in a dream nobody vouches for."""
    tasks: str = ""
    """Practise only these tasks, by id, with commas between; empty means all of the train split."""
    steps: int = 30
    """Rounds of playing and learning."""
    groups: int = 12
    """Tasks per step."""
    group_size: int = 8
    """Episodes of each task, compared with one another."""
    max_steps: int = 30
    """Turns after which an episode is cut off."""
    temperature: float = 1.0
    """How freely the policy acts while it practises."""
    reward: str = "outcome"
    """What is learnt from: outcome (1 for success, as in the paper), or the environment's own."""
    unknown: str = "left-out"
    """Episodes that the dream gives up, as it does not know or finds no words: left-out of all
    comparisons, or with no-reward."""
    learning_rate: float = 3e-4
    """Its top; it stays there until the cooldown."""
    warmup_steps: int = 5
    """Steps over which it rises to its top."""
    cooldown_steps: int = 0
    """The last steps, over which it falls again; what comes for real after a dream has none."""
    continued: bool = False
    """Go on with the optimiser, and the critic, that the run given with --from ended with; else new
    ones, whose first steps are as long for noise as for a slope."""
    epochs: int = 1
    """Times that a step's episodes are gone through."""
    minibatches: int = 2
    """Updates per epoch; the episodes of a step must divide into them."""
    tokens_per_pass: int = 8192
    """What goes through the model at once: memory, not results, depends on it."""
    clip: float = 0.2
    """How far the policy may move from the one that played before its gradient is cut off."""
    kl: float = 0.02
    """How strongly it is held to the policy that it started from; 0 lets it go."""
    kl_estimator: str = "k3"
    """How that distance is estimated: k2 or k3."""
    kl_stop: float = 0.0
    """End an update when the policy is further than this from the one that played; 0 never."""
    entropy: float = 0.0
    """A bonus for staying undecided."""
    invalid_penalty: float = 0.0
    """Taken off for each refused action."""
    enrich: bool = False
    """Let the dream look things up in what is dreamt on the way, too, as the paper does; off, in
    the record alone."""
    eval_every: int = 10
    """Steps between looks at the real environment, the first before any step; 0 never looks."""
    eval_episodes: int = 50
    """Tasks of the dev split that a look plays, once each."""
    eval_greedy: bool = True
    """Play them a second time doing the likeliest thing."""
    then_real: int = 0
    """After the dream, practise for real on at most so many transitions; 0 stays in the dream."""
    store: str = ""
    """Where those transitions go, an experience store; empty means one of the run's own. If set,
    what the watch tells again for real goes there too."""
    real_steps: int = 0
    """Steps for real after the dream; 0 means as many as its transitions allow."""
    switch_step: int = 0
    """Leave the dream after exactly so many steps; 0 by rule: nothing rises, or only the dream."""
    switch_window: int = 10
    """Steps over which success in the dream is averaged to tell whether it rises."""
    switch_rise: float = 0.02
    """How much it must rise over a window to count as rising."""
    switch_looks: int = 2
    """Looks at reality without a new best after which it counts as rising no longer."""
    watch: str = "off"
    """Tell dreams again for real on the way: off; note; or, when precision falls, stop or return
    to the policy of the best look."""
    watch_every: int = 10
    """Steps between such readings."""
    watch_episodes: int = 40
    """Episodes of each; their real transitions count as evaluation."""
    watch_precision: float = 0.85
    """The share of successes in the dream that must be real."""
    watch_wins: int = 10
    """Successes in the dream below which a reading says nothing."""
    rounds: int = 1
    """Rounds at most: between two, the dream is fitted again on what was made for real since. The
    budgets are those of all rounds together."""
    refit_steps: int = 150
    """Updates of the dream between two rounds."""
    checkpoint_every: int = 1
    """Steps between checkpoints."""
    threads: int = 0
    """Threads of one update; 0 means one per core."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, known in (
            ("reward", REWARDS), ("unknown", UNKNOWN), ("kl_estimator", ESTIMATORS),
            ("watch", WATCH),
        ):  # fmt: skip
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"rl.{name} '{value}'.{did_you_mean(value, known)}")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ConfigError(f"rl.{name} is {getattr(self, name)}; it must be at least 1")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"rl.{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("learning_rate", "temperature", "clip"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"rl.{name} is {getattr(self, name)}; it must be above 0")
        if self.groups * self.group_size % self.minibatches:
            raise ConfigError(
                f"{self.groups} groups of {self.group_size} episodes do not divide into "
                f"{self.minibatches} minibatches: change rl.groups, rl.group_size or "
                "rl.minibatches"
            )
        if self.enrich and self.world == "real":
            raise ConfigError("rl.enrich is about a dream's memory, but rl.world is real")
        self._check_transfer()
        if self.rounds > 1:
            self._check_rounds()

    def after_a_dream(self, real_steps: int, *, continued: bool = False) -> RlConfig:
        """Return how to go on for real, on a small budget, from the policy that a dream left.

        After one more step in the dream. A new optimiser warms up over two steps, that one and one
        for real, to half the rate: what is learnt already is to stay. A `continued` one is warm,
        and a quarter is what a policy that has cooled down was seen to bear.
        """
        return replace(
            self, steps=1, switch_step=1, real_steps=real_steps, continued=continued,
            warmup_steps=0 if continued else min(2, self.warmup_steps), cooldown_steps=0,
            learning_rate=self.learning_rate / (4 if continued else 2),
        )  # fmt: skip

    def _check_transfer(self) -> None:
        """Check what concerns reality after a dream, and the watch over it."""
        for name in ("switch_rise", "watch_precision"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"rl.{name} is {getattr(self, name)}; it is between 0 and 1")
        if self.watch == "return" and not self.eval_every:
            raise ConfigError(
                "rl.watch=return goes back to the policy of the best look at reality, but "
                "rl.eval_every is 0 and nobody looks"
            )
        if not self.then_real:
            return
        if self.world == "real":
            raise ConfigError(
                f"--then-real {self.then_real} goes on for real after a dream, but rl.world is "
                "real already: name a dream with --world"
            )
        dearest = self.group_size * self.max_steps
        if self.then_real < dearest:
            raise ConfigError(
                f"--then-real {self.then_real} does not pay for one group: rl.group_size "
                f"{self.group_size} times rl.max_steps {self.max_steps} is {dearest}"
            )
        if self.switch_step > self.steps:
            raise ConfigError(
                f"rl.switch_step is {self.switch_step}, but the dream has rl.steps = {self.steps}"
            )

    def _check_rounds(self) -> None:
        """Check that several rounds can be made."""
        several = f"rl.rounds = {self.rounds}"
        if self.world == "real":
            raise ConfigError(
                f"{several} fits a dream again between rounds, but rl.world is real: name a dream "
                "with --world"
            )
        if not self.then_real and self.watch not in ("stop", "return"):
            raise ConfigError(
                f"{several}, but nothing would end the first: let a watch act with --set "
                "rl.watch=stop or return, or make real transitions with --then-real"
            )
        if self.store:
            raise ConfigError(f"{several} keeps a store for each round: leave rl.store empty")
        if self.steps < self.rounds:
            raise ConfigError(f"{several}, but rl.steps = {self.steps} is less than one for each")
        if not self.then_real:
            return
        dearest = self.group_size * self.max_steps
        if self.then_real // self.rounds < dearest:
            raise ConfigError(
                f"--then-real {self.then_real} does not pay for one group in each of {several}: "
                f"rl.group_size {self.group_size} times rl.max_steps {self.max_steps} is {dearest}"
            )
        if self.switch_step > self.steps // self.rounds:
            raise ConfigError(
                f"rl.switch_step is {self.switch_step}, but each of {several} has "
                f"{self.steps // self.rounds} of rl.steps = {self.steps}"
            )


_COUNTS = (
    "steps", "groups", "group_size", "max_steps", "epochs", "minibatches", "tokens_per_pass",
    "eval_episodes", "checkpoint_every", "switch_window", "switch_looks", "watch_every",
    "watch_episodes", "rounds", "refit_steps",
)  # fmt: skip
_NOT_NEGATIVE = (
    "warmup_steps", "cooldown_steps", "kl", "kl_stop", "entropy", "invalid_penalty", "eval_every",
    "threads", "then_real", "real_steps", "switch_step", "watch_wins",
)  # fmt: skip
