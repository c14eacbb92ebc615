"""The sections on the dream: how an experience model is fitted, and how it plays."""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.errors import ConfigError, did_you_mean

AGREE_ON = ("flags", "states")
CONFIDENCE_OF = ("reply", "flags")


@dataclass(frozen=True, slots=True)
class FitConfig:
    """How an experience model learns from recorded steps."""

    model: str = "1m"
    """A size from scratch (1m, 3m, 10m), or a Hugging Face model folder to start from."""
    steps: int = 500
    """Updates of the weights; 0 trains for `seconds` instead, which cannot be resumed exactly."""
    seconds: float = 420.0
    """Time to train where `steps` is 0."""
    tokens_per_step: int = 4096
    """The size of a batch in tokens, filler included."""
    learning_rate: float = 3e-3
    """Its top; it warms up, stays, and falls over the second half."""
    threads: int = 0
    """Threads of one update; 0 means one per core."""
    patience: int = 0
    """Stop after so many looks at the held-out curve without a new best; 0 never stops early."""
    eval_every: int = 100
    """Updates between looks at the held-out curve, and between checkpoints."""
    transitions: int = 0
    """Learn from at most so many recorded steps, whole trajectories; 0 means all."""
    held_out_share: float = 0.05
    """The share of tasks that are kept back for the curve."""
    refused_share: float = 0.0
    """The share of refused and no-effect steps among what is learnt; 0 takes them as recorded."""
    ending_share: float = 0.0
    """The least share of steps that end an episode among what is learnt, by leaving out others; 0
    takes them as recorded. They are few, and what they turn on is learnt last."""
    forget_share: float = 0.0
    """The share of steps that are asked without references of their own task: else a model copies
    from episodes that won, and cannot tell a success where none has won yet."""
    thin_share: float = 0.0
    """The share of steps whose references of their own task come from a random part of its
    episodes: else a model learns to copy the very same step, and a new task has only like ones."""
    rename_share: float = 0.0
    """The share of steps that are told under other names of their kind, so that names are read
    and copied instead of known by heart."""
    task_share: float = 0.0
    """The share of lessons about tasks (how one opens, how it could be varied) beside those about
    steps; at 0 the dream cannot make tasks."""
    vary_goals: bool = False
    """Teach variations to find other goals in a known world, as a kitchen allows. Leave it off
    where all tasks have one goal or the goal describes the world: then only beginnings vary."""
    vocabulary: int = 2048
    """The most entries of the vocabulary of a model from scratch."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("steps", "threads", "patience", "transitions"):
            if getattr(self, name) < 0:
                raise ConfigError(f"fit.{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("tokens_per_step", "eval_every", "vocabulary"):
            if getattr(self, name) < 1:
                raise ConfigError(f"fit.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("seconds", "learning_rate"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"fit.{name} is {getattr(self, name)}; it must be above 0")
        for name in (
            "held_out_share", "refused_share", "ending_share", "forget_share", "thin_share",
            "rename_share", "task_share",
        ):  # fmt: skip
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"fit.{name} is {getattr(self, name)}; it is a share below 1")
        if self.forget_share + self.thin_share > 1.0:
            raise ConfigError(
                "fit.forget_share and fit.thin_share are parts of one whole: at most 1"
            )


@dataclass(frozen=True, slots=True)
class DreamConfig:
    """How the dream answers. The first six settings are learnt: a fitted model keeps its own."""

    history: bool = True
    """Show the model what happened before (the paper's ablation: no history)."""
    reasoning: bool = True
    """Let it reason before it answers (the paper's ablation: no reasoning)."""
    references: int = 3
    """Similar recorded steps that it is shown; 0 is the paper's ablation without replay."""
    window: int = 4
    """Earlier turns that it is shown in full."""
    placeholders: bool = False
    """Let a small model point at the things of an action instead of copying their names."""
    hints: bool = False
    """Tell a small model how references of the task differ from now, and what of the goal is
    here."""
    grounding: bool = True
    """Refuse by rule what is about things that nobody has heard of or seen."""
    ledger: bool = True
    """What was shown stays true, and named pages come from memory."""
    min_similarity: float = 0.0
    """Answer `unknown` where the nearest reference is less alike than this."""
    min_confidence: float = 0.0
    """Answer `unknown` where the reply's least sure token is less probable than this."""
    confidence_of: str = "reply"
    """Whose least sure token counts: of the whole `reply`, or of its `flags` (fitted models)."""
    second: str = ""
    """Answer `unknown` where another dream, such as a fit with another seed, says otherwise."""
    agree_on: str = "states"
    """What the two must agree on: `flags`, or `states`, which is both."""
    known_pages: bool = False
    """Answer `unknown` where a new place is one that no memory of this task holds."""
    known_wins: bool = False
    """Answer `unknown` where success is told and no reference shows the same action achieve it."""
    known_losses: bool = False
    """Answer `unknown` where an action that might have achieved the task is said not to, and no
    reference shows the same action achieve nothing."""
    known_words: bool = False
    """Answer `unknown` where the model finds no answer that can be read; otherwise the episode
    breaks. In practice with `rl.unknown=no-reward` it is on."""
    longest_answer: int = 0
    """Tokens after which a reply is cut off; 0 means 160 for fitted models, 1024 for others."""
    temperature: float = 0.0
    """How freely replies are drawn; identical questions still get identical replies, unless
    `share_answers` is off."""
    share_answers: bool = True
    """Give all episodes the same reply to the same question, so that luck decides nothing; off,
    each episode draws its own where the temperature is above 0."""
    outcome_only: bool = True
    """Reward success with 1 and everything else with 0, whatever the model says."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("references", "window", "longest_answer"):
            if getattr(self, name) < 0:
                raise ConfigError(f"dream.{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("min_similarity", "min_confidence"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"dream.{name} is {getattr(self, name)}; it is between 0 and 1")
        for name, known in (("agree_on", AGREE_ON), ("confidence_of", CONFIDENCE_OF)):
            if getattr(self, name) not in known:
                wrong = getattr(self, name)
                raise ConfigError(f"dream.{name} '{wrong}'.{did_you_mean(wrong, known)}")
        if self.temperature < 0:
            raise ConfigError(f"dream.temperature is {self.temperature}; it must be at least 0")
