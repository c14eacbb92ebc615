"""The sections on policies: what a policy is, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.errors import ConfigError, did_you_mean

FORMATS = ("auto", "compact", "conversation", "chat")
CHOICES = ("nothing", "listed", "known")
ALGORITHMS = ("sft", "dpo", "grpo", "ppo", "rloo", "gigpo")


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """What a policy is and how it is asked. A trained policy keeps all of it on its card."""

    model: str = "1m"
    """A size from scratch (1m, 3m, 10m), smollm2, a model folder, or a run of fit or train."""
    format: str = "auto"
    """compact for small models; conversation (a chat that grows), or chat (anew in every turn), for
    instruct models; auto takes what the model's vocabulary is made for."""
    window: int = -1
    """Earlier turns that it is shown; -1 means all, as far as the model reads."""
    list_actions: bool = False
    """List the admissible actions in what it reads, where the environment knows them."""
    mark_seen: bool = False
    """Mark the places where the episode has been, in what it reads: small models forget them."""
    mark_goal: bool = False
    """Mark what the goal speaks of, in what it reads: small models do not look it up."""
    mark_actions: bool = False
    """Let actions bear the marks of the names in them, as it reads and writes them."""
    mark_tried: bool = False
    """Let actions that it chooses among bear a mark where it did the same in the very same state
    before; with `choose` only."""
    think: bool = False
    """Ask for reasoning before the action; in the formats chat and conversation."""
    longest_action: int = 24
    """Tokens after which an answer is cut off and counts as no action."""
    temperature: float = 1.0
    """How freely it acts; 0 does the likeliest thing."""
    choose: str = "nothing"
    """Let it choose among listed actions (`listed`), known ones (`known`), or speak (`nothing`)."""
    vocabulary: int = 2048
    """The most entries of the vocabulary of a model from scratch."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.format not in FORMATS:
            raise ConfigError(f"policy.format '{self.format}'.{did_you_mean(self.format, FORMATS)}")
        if self.choose not in CHOICES:
            raise ConfigError(f"policy.choose '{self.choose}'.{did_you_mean(self.choose, CHOICES)}")
        if self.mark_tried and self.choose == "nothing":
            raise ConfigError(
                "policy.mark_tried marks actions to choose among: set policy.choose, too"
            )
        if self.window < -1:
            raise ConfigError(f"policy.window is {self.window}; it is -1 (all), or 0 and more")
        if self.temperature < 0:
            raise ConfigError(f"policy.temperature is {self.temperature}; it must be at least 0")
        for name in ("longest_action", "vocabulary"):
            if getattr(self, name) < 1:
                raise ConfigError(f"policy.{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a policy learns."""

    algo: str = "sft"
    """sft (cloning), dpo (pairs, see `dpo`); grpo, ppo, rloo, gigpo (by trial, see `rl`)."""
    demos: int = 40
    """Demonstrations: so many successful real episodes of the train split, no more, no fewer."""
    behaviour: str = "expert"
    """Whose episodes they are."""
    steps: int = 200
    """Updates of the weights."""
    tokens_per_step: int = 4096
    """The size of a batch in tokens, filler included."""
    learning_rate: float = 2e-3
    """Its top; it warms up, stays, and falls over the second half."""
    warmup_steps: int = 20
    """Updates over which the learning rate rises to its top."""
    renaming: float = 0.9
    """The share of demonstrations that each epoch retells under other names; 0 renames nothing."""
    held_out_share: float = 0.1
    """The share of the demonstrations that is kept back for the curve."""
    patience: int = 0
    """Stop after so many looks at the held-out curve without a new best; 0 never stops early."""
    eval_every: int = 20
    """Updates between looks at the held-out curve, and between checkpoints."""
    threads: int = 0
    """Threads of one update; 0 means one per core."""
    lora_rank: int = 0
    """Train adapters of this rank beside the weights (LoRA); 0 trains the weights themselves."""
    lora_alpha: float = 32.0
    """How much adapters count: they are multiplied by alpha / rank."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.algo not in ALGORITHMS:
            raise ConfigError(f"train.algo '{self.algo}'.{did_you_mean(self.algo, ALGORITHMS)}")
        for name in ("demos", "steps", "tokens_per_step", "eval_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"train.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("patience", "threads", "warmup_steps", "lora_rank"):
            if getattr(self, name) < 0:
                raise ConfigError(f"train.{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("learning_rate", "lora_alpha"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"train.{name} is {getattr(self, name)}; it must be above 0")
        if not 0.0 <= self.renaming <= 1.0:
            raise ConfigError(f"train.renaming is {self.renaming}; it is a share between 0 and 1")
        if not 0.0 <= self.held_out_share < 1.0:
            raise ConfigError(
                f"train.held_out_share is {self.held_out_share}; it is a share below 1"
            )
