"""Every setting of a run, with its meaning in the string below it.

A config that can be constructed is valid: checks live in `__post_init__` and never repair anything.
The defaults are the small run that the tests execute.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dreamgym.config.audit import AuditConfig
from dreamgym.config.curriculum import CurriculumConfig
from dreamgym.config.dpo import DpoConfig
from dreamgym.config.dream import DreamConfig, FitConfig
from dreamgym.config.llm import AnnotateConfig, LlmConfig
from dreamgym.config.rl import RlConfig
from dreamgym.config.train import PolicyConfig, TrainConfig
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import Split


@dataclass(frozen=True, slots=True)
class EnvConfig:
    """The real environment."""

    spec: str = "twx/coin"
    """Which environment: `family/name?param=value`. `dreamgym envs` lists them."""
    workers: int = 0
    """Worker processes that hold the engine; 0 means one per core."""
    time_limit: float = 60.0
    """Seconds an engine may take to answer before its episode fails and its worker is replaced."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least("env.workers", self.workers, 0)
        _positive("env.time_limit", self.time_limit)


@dataclass(frozen=True, slots=True)
class CollectConfig:
    """How experience is gathered in the real environment."""

    split: str = "train"
    """Which tasks: train, dev or test."""
    episodes: int = 100
    """How many episodes; tasks are taken in order, again from the first when they run out."""
    tasks: int = 0
    """Use only so many tasks of the split, so that each is played several times; 0 means all."""
    policy: str = "mixed"
    """Who acts: expert, random, explore, noisy, probe, wander, mixed, `module:function`, or a model
    folder."""
    noise: float = 0.3
    """The share of random actions of the noisy policy."""
    probe_share: float = 0.6
    """The share of near-miss actions of the probe policy: what reality refuses goes on record."""
    max_steps: int = 50
    """Steps after which an episode is cut off, unless the environment's own limit comes first."""
    concurrency: int = 64
    """Episodes that run side by side."""
    begin_with: str = ""
    """A store that the run's own begins as a copy of; it stays as it is."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.split not in list(Split):
            raise ConfigError(f"collect.split '{self.split}'.{did_you_mean(self.split, Split)}")
        _at_least("collect.episodes", self.episodes, 1)
        _at_least("collect.tasks", self.tasks, 0)
        _at_least("collect.max_steps", self.max_steps, 1)
        _at_least("collect.concurrency", self.concurrency, 1)
        _share("collect.noise", self.noise)
        _share("collect.probe_share", self.probe_share)


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """How a policy is judged in the real environment."""

    split: str = "test"
    """Which tasks: train, dev or test."""
    episodes: int = 100
    """How many tasks, each played once."""
    policy: str = "expert"
    """Who acts: expert, random, explore, noisy, probe, wander, `module:function`, or a model
    folder."""
    max_steps: int = 50
    """Steps after which an episode is cut off and counts as not achieved."""
    overlap: bool = True
    """Measure and print what the evaluated tasks share with the training split."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.split not in list(Split):
            raise ConfigError(f"eval.split '{self.split}'.{did_you_mean(self.split, Split)}")
        _at_least("eval.episodes", self.episodes, 1)
        _at_least("eval.max_steps", self.max_steps, 1)


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """Where experience is kept, and how similar steps are found."""

    store: str = ""
    """Path of the experience store; empty means `experience.sqlite` in the run directory."""
    embedder: str = "hashing"
    """What turns texts to vectors: hashing, static, minilm, or the URL of an endpoint."""
    held_out: bool = False
    """Let tasks of the test split into the store. Off, so that they can never be retrieved."""
    dream_capacity: int = 200_000
    """Dream transitions kept; the oldest go first."""
    real_capacity: int = 0
    """Real transitions kept; 0 means all."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least("replay.dream_capacity", self.dream_capacity, 1)
        _at_least("replay.real_capacity", self.real_capacity, 0)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything a run depends on."""

    seed: int = 0
    """The one seed from which all randomness is derived."""
    env: EnvConfig = field(default_factory=EnvConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    llm: LlmConfig = field(default_factory=LlmConfig)
    annotate: AnnotateConfig = field(default_factory=AnnotateConfig)
    fit: FitConfig = field(default_factory=FitConfig)
    dream: DreamConfig = field(default_factory=DreamConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    dpo: DpoConfig = field(default_factory=DpoConfig)
    rl: RlConfig = field(default_factory=RlConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name} is {value}; it must be at least {least}")


def _positive(name: str, value: float) -> None:
    if value <= 0:
        raise ConfigError(f"{name} is {value}; it must be above 0")


def _share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} is {value}; it is a share between 0 and 1")
