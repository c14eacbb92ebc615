"""The values that flow through DreamGym: tasks, observations, actions, steps, trajectories.

Everything here is a frozen, slotted dataclass of the standard library: no behaviour beyond small
derived views, no third-party import, no dict as a core type. Change means `dataclasses.replace`.
`codec.py` turns these values to JSON and back; `protocols.py` says who passes them to whom.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

_STRICT = {"extra": "forbid"}
"""Read by pydantic in `codec.py`: a record with an unknown key is an error, never half-read."""


class Source(StrEnum):
    """Where an experience came from."""

    REAL = "real"
    """A real environment answered."""
    DREAM = "dream"
    """An experience model answered."""


class Split(StrEnum):
    """Which part of an environment's tasks a task belongs to."""

    TRAIN = "train"
    """May be trained on and shown to any model."""
    DEV = "dev"
    """For choosing checkpoints and settings."""
    TEST = "test"
    """For the final figure only."""


class StopReason(StrEnum):
    """Why a trajectory ended."""

    TERMINATED = "terminated"
    """The environment ended the task, won or lost."""
    TRUNCATED = "truncated"
    """The environment's own step limit was reached."""
    STEP_LIMIT = "step_limit"
    """The caller's step limit was reached."""
    FAILED = "failed"
    """Something broke: see `Trajectory.error`. Such a trajectory says nothing about the agent."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to achieve in one environment, under an id that never changes."""

    __pydantic_config__ = _STRICT

    id: str
    """Unique and stable: the same id names the same start in every process and on every machine."""
    env: str
    """The canonical spec of the world it belongs to, such as `twx/coin?numLocations=6`."""
    key: str
    """How the engine itself addresses the task: a seed, a game file."""
    split: Split
    goal: str = ""
    """The instruction in words; empty until an engine that keeps it to itself has been reset."""
    source: Source = Source.REAL
    first_state: str | None = None
    """The opening state of a synthetic task; real tasks ask their engine."""
    parents: tuple[str, ...] = ()
    """Ids of the tasks a synthetic one was varied from."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent sees: the abstract textual state, made by the environment's mapper."""

    __pydantic_config__ = _STRICT

    text: str
    admissible: tuple[str, ...] | None = None
    """The actions that the engine would accept now, sorted; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The answer to a reset: the task with its goal filled in, and the first observation."""

    __pydantic_config__ = _STRICT

    task: Task
    observation: Observation


@dataclass(frozen=True, slots=True)
class SampledChoice:
    """An action that was drawn among given ones, by their scores, instead of word by word."""

    __pydantic_config__ = _STRICT

    candidates: tuple[tuple[int, ...], ...]
    """The tokens of all that could have been chosen."""
    chosen: int
    logprob: float
    """Of the choice among the candidates, at the temperature that it was drawn at."""

    def __post_init__(self) -> None:
        """Refuse a choice of nothing."""
        if not 0 <= self.chosen < len(self.candidates):
            raise ValueError(f"candidate {self.chosen} was chosen of {len(self.candidates)}")
        if not math.isfinite(self.logprob):
            raise ValueError("the logprob of a choice is not finite")


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The tokens of an action exactly as they were sampled; nobody re-tokenises text."""

    __pydantic_config__ = _STRICT

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """The model's own, token by token, also where the action was chosen among others."""
    choice: SampledChoice | None = None

    def __post_init__(self) -> None:
        """Refuse tokens without their probabilities."""
        if len(self.ids) != len(self.logprobs):
            raise ValueError(f"{len(self.ids)} token ids but {len(self.logprobs)} logprobs")
        if not all(map(math.isfinite, self.logprobs)):
            raise ValueError("a logprob is not finite")
        if self.choice and self.choice.candidates[self.choice.chosen] != self.ids:
            raise ValueError("the tokens are not those of the candidate that was chosen")


@dataclass(frozen=True, slots=True)
class Action:
    """What an agent does: text, and the tokens it was sampled as if a model wrote it."""

    __pydantic_config__ = _STRICT

    text: str
    tokens: SampledTokens | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What lay behind an environment's answer; `run_episode` writes it to the step's record."""

    __pydantic_config__ = _STRICT

    reasoning: str
    references: tuple[str, ...] = ()
    """Ids of the transitions that were shown to the experience model."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """An environment's answer to one action. Success is a flag of its own, not read off reward."""

    __pydantic_config__ = _STRICT

    observation: Observation
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool = False
    """The task is achieved; only ever true together with `terminated`."""
    refused: bool = False
    """The environment did not carry the action out, whether or not it understood it."""
    account: Account | None = None
    """Where the environment gives one, as a dream does; a recorded step keeps it as its own."""

    def __post_init__(self) -> None:
        """Refuse answers that no environment may give."""
        if not math.isfinite(self.reward):
            raise ValueError(f"reward {self.reward} is not a finite number")
        if self.success and not self.terminated:
            raise ValueError("success without termination: a task that goes on is not achieved")


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a trajectory: the action, the answer, and what lay behind the answer."""

    __pydantic_config__ = _STRICT

    action: Action
    result: StepResult
    reasoning: str | None = None
    """Why this action leads to this state: written by an annotator or by the experience model."""
    references: tuple[str, ...] = ()
    """Ids of the transitions that were shown to the experience model for this step."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who produced a trajectory, so that no record is ever of unknown origin."""

    __pydantic_config__ = _STRICT

    source: Source
    behaviour: str
    """The policy that acted, such as `expert`, `noisy`, a checkpoint's name, `imported:atif`."""
    seed: int = 0
    engine: str = ""
    """Name and version of the engine or the model that answered."""
    mapper: str = ""
    """Digest of the observation mapper: states of different mappers must not be mixed."""
    prompt: str = ""
    """Digest of the prompt that made the experience model answer; empty for real experience."""


@dataclass(frozen=True, slots=True)
class EpisodeFailure:
    """What broke an episode. A failed episode is data: counted, shown, never given a reward."""

    __pydantic_config__ = _STRICT

    kind: str
    """The error's class name, such as `EnvTimeout`."""
    where: str
    """The boundary that caught it, such as `env.step`."""
    message: str


@dataclass(frozen=True, slots=True)
class Transition:
    """One step seen on its own: what retrieval finds and what an experience model learns from."""

    __pydantic_config__ = _STRICT

    id: str
    trajectory_id: str
    index: int
    env: str
    task_id: str
    goal: str
    split: Split
    source: Source
    state: str
    action: str
    next_state: str
    reward: float
    done: bool
    """The task ended here (`terminated`); a mere step limit does not count."""
    success: bool
    refused: bool
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode: the opening and every step, with how it ended and who made it."""

    __pydantic_config__ = _STRICT

    id: str
    task: Task
    opening: Observation
    steps: tuple[Step, ...]
    stop: StopReason
    provenance: Provenance
    error: EpisodeFailure | None = None

    @property
    def success(self) -> bool:
        """Whether the task was achieved."""
        return bool(self.steps) and self.steps[-1].result.success

    @property
    def total_reward(self) -> float:
        """The sum of the environment's rewards."""
        return sum(step.result.reward for step in self.steps)

    def transitions(self) -> Iterator[Transition]:
        """Yield each step as a transition of its own."""
        state = self.opening.text
        for index, step in enumerate(self.steps):
            yield Transition(
                id=f"{self.id}#{index}",
                trajectory_id=self.id,
                index=index,
                env=self.task.env,
                task_id=self.task.id,
                goal=self.task.goal,
                split=self.task.split,
                source=self.provenance.source,
                state=state,
                action=step.action.text,
                next_state=step.result.observation.text,
                reward=step.result.reward,
                done=step.result.terminated,
                success=step.result.success,
                refused=step.result.refused,
                reasoning=step.reasoning,
            )
            state = step.result.observation.text

    def with_reasoning(self, reasoning: tuple[str | None, ...]) -> Trajectory:
        """Return a copy whose steps carry these explanations, one per step."""
        if len(reasoning) != len(self.steps):
            count = f"{len(reasoning)} explanations for {len(self.steps)} steps"
            raise ValueError(f"{count} of trajectory {self.id}")
        steps = tuple(
            replace(step, reasoning=why) for step, why in zip(self.steps, reasoning, strict=True)
        )
        return replace(self, steps=steps)


class Origin(StrEnum):
    """Who decided what a dream answers."""

    MODEL = "model"
    """The experience model."""
    LEDGER = "ledger"
    """The model named a page that the episode has shown before; that page was given again."""
    REFERENCE = "reference"
    """The model named a page that a retrieved transition holds; that page was given."""
    GROUNDING = "grounding"
    """The action is malformed, or about nothing that the episode or its references know."""
    UNSEEN_KIND = "unseen-kind"
    """No action of this kind was ever carried out in the recorded experience."""
    UNKNOWN = "unknown"
    """Nobody can tell: the episode ends there, without reward."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an experience model says about one action."""

    __pydantic_config__ = _STRICT

    reasoning: str
    next_state: str
    reward: float = 0.0
    done: bool = False
    success: bool = False
    refused: bool = False
    origin: Origin = Origin.MODEL
    confidence: float | None = None
    """Probability of the least sure token of the reply, where the back end says."""

    def __post_init__(self) -> None:
        """Refuse predictions that no environment may make true."""
        if not math.isfinite(self.reward):
            raise ValueError(f"reward {self.reward} is not a finite number")
        if self.success and not self.done:
            raise ValueError("success without done: a task that goes on is not achieved")
        if self.refused and (self.reward > 0 or self.success):
            raise ValueError("a refused action earns nothing and achieves nothing")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    __pydantic_config__ = _STRICT

    role: str
    """`system`, `user` or `assistant`."""
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a language model is asked: a chat or a plain text to go on from, and how to answer."""

    __pydantic_config__ = _STRICT

    prompt: str | tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends; they are not part of it."""
    seed: int | None = None
    json_schema: str | None = None
    """A JSON schema, as text, that the answer must follow where the back end can enforce it."""
    grammar: str | None = None
    """The same as a grammar in llama.cpp's notation (GBNF), for answers that are not JSON."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a completion took."""

    __pydantic_config__ = _STRICT

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A language model's answer."""

    __pydantic_config__ = _STRICT

    text: str
    model: str
    truncated: bool = False
    """The answer was cut off at `max_tokens`."""
    usage: Usage = field(default_factory=Usage)
    tokens: SampledTokens | None = None
    """As sampled, where the back end says."""


def derive_seed(*parts: str | int) -> int:
    """Return a 63-bit seed that depends on every part and on nothing else (never on `hash()`)."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def digest(text: str, *, size: int = 8) -> str:
    """Return a short, stable hexadecimal name for a text."""
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
