"""Played episodes as token sequences: what a model read, what it said, and what came of it.

An episode is one sequence: the first prompt, an action, what the environment said, the next action.
Only actions are trained on; each token goes through the model once per pass, however many turns
follow it. Where a prompt is no continuation (a history window that moved), a new sequence begins.
Pure values: `batch.py` makes tensors of them, `algorithms.py` says what each action was worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym.types import SampledTokens, Trajectory

Ids = tuple[int, ...]
Floats = NDArray[np.float64]
READ = -1
"""The turn of a token that the model did not write."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An action that was chosen among given ones by their scores, not written token by token.

    A candidate's score is the sum of its tokens' logprobs; the choice was drawn from the softmax of
    the scores divided by the temperature. In credit and loss it counts as one token: the first.
    """

    place: int
    """Where in its sequence the chosen candidate begins."""
    candidates: tuple[Ids, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """Tokens that a model read from left to right, and those among them that it wrote."""

    ids: Ids
    turns: tuple[int, ...]
    """For each token the turn whose action it is part of, or `READ`. Of an action that was chosen,
    the first token only."""
    logprobs: tuple[float, ...]
    """Of the action tokens, in order, as they were sampled; of a choice, that of the choice."""
    decisions: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be learnt from."""
        if len(self.ids) != len(self.turns):
            raise ValueError(f"{len(self.ids)} tokens but {len(self.turns)} turn numbers")
        acted = self.action_turns
        if len(acted) != len(self.logprobs):
            raise ValueError(f"{len(acted)} action tokens but {len(self.logprobs)} logprobs")
        if list(acted) != sorted(acted):
            raise ValueError("the turns of a sequence come in order")
        if self.turns and self.turns[0] != READ:
            raise ValueError("the first token is an action: nothing was read before it")
        for decision in self.decisions:
            chosen = decision.candidates[decision.chosen]
            after = slice(decision.place, decision.place + len(chosen))
            marks = self.turns[after]
            if self.ids[after] != chosen or marks[0] == READ or set(marks[1:]) - {READ}:
                raise ValueError(f"the choice at token {decision.place} is not what stands there")

    @property
    def reach(self) -> int:
        """Positions that a model needs to read this, candidates that were not chosen too."""
        ends = [d.place + len(ids) for d in self.decisions for ids in d.candidates]
        return max([len(self.ids), *ends])

    @property
    def size(self) -> int:
        """Tokens that a model computes to read this, candidates that were not chosen too."""
        beside = sum(len(ids) - 1 for d in self.decisions for ids in d.candidates)
        return len(self.ids) + beside

    @property
    def action_turns(self) -> tuple[int, ...]:
        """The turn of each action token."""
        return tuple(turn for turn in self.turns if turn != READ)


class Weaver:
    """Joins the turns of one episode, as they happen, into as few sequences as possible."""

    def __init__(self) -> None:
        self._done: list[TokenSequence] = []
        self._ids: Ids = ()
        self._turns: list[int] = []
        self._logprobs: list[float] = []
        self._decisions: list[Decision] = []
        self._turn = 0

    def add(self, prompt: Ids, action: SampledTokens) -> None:
        """Add a turn: everything that the model read before it acted, and what it then wrote.

        A prompt that begins with all that is in the sequence so far goes on with it. Another one
        begins a sequence of its own: no token is ever shown to the model where it did not stand.
        """
        if not prompt or not action.ids:
            raise ValueError(f"turn {self._turn}: a prompt and an action have a token at least")
        self._read(prompt)
        self._ids += action.ids
        self._turns += [self._turn] * len(action.ids)
        self._logprobs += action.logprobs
        self._turn += 1

    def choose(
        self, prompt: Ids, candidates: tuple[Ids, ...], *, chosen: int, logprob: float
    ) -> None:
        """Add a turn whose action was chosen among candidates: see `Decision`."""
        if not prompt or not all(candidates):
            raise ValueError(f"turn {self._turn}: a prompt and a candidate have a token at least")
        self._read(prompt)
        self._decisions.append(Decision(len(prompt), candidates, chosen))
        said = candidates[chosen]
        self._ids += said
        self._turns += [self._turn, *[READ] * (len(said) - 1)]
        self._logprobs.append(logprob)
        self._turn += 1

    def end(self, prompt: Ids) -> None:
        """Add what would have been read next, for a critic to judge where the episode was left."""
        if prompt[: len(self._ids)] == self._ids:
            self._read(prompt)

    def sequences(self) -> tuple[TokenSequence, ...]:
        """Return the episode so far."""
        return (*self._done, *([self._sequence()] if self._ids else []))

    def _read(self, prompt: Ids) -> None:
        known = len(self._ids)
        if prompt[:known] != self._ids:
            self._done.append(self._sequence())
            self._turns, self._logprobs, self._decisions, known = [], [], [], 0
        self._ids = prompt
        self._turns += [READ] * (len(prompt) - known)

    def _sequence(self) -> TokenSequence:
        return TokenSequence(
            self._ids, tuple(self._turns), tuple(self._logprobs), tuple(self._decisions)
        )


@dataclass(frozen=True, slots=True)
class TokenEpisode:
    """One episode as a learner sees it."""

    sequences: tuple[TokenSequence, ...]
    rewards: tuple[float, ...]
    """One per turn."""
    refused: tuple[bool, ...] = ()
    """For each turn whether the environment refused the action."""
    states: tuple[str, ...] = ()
    """For each turn the state that it acted in."""
    success: bool = False
    terminated: bool = True
    """The task ended; otherwise a step limit did."""
    failed: bool = False
    """Something broke: nothing here may be learnt from or counted."""
    sampled: bool = True
    """The model wrote the actions itself. False for demonstrations, whose logprobs mean nothing."""

    def __post_init__(self) -> None:
        """Refuse episodes whose parts do not fit; a failed one may have broken off anywhere."""
        if self.failed:
            return
        turns = len(self.rewards)
        if sorted(set(self.token_turns.tolist())) != list(range(turns)):
            raise ValueError(f"{turns} rewards, but actions of {len(set(self.token_turns))} turns")
        if list(self.token_turns) != sorted(self.token_turns):
            raise ValueError("the turns of an episode come in order")
        for name in ("refused", "states"):
            if getattr(self, name) and len(getattr(self, name)) != turns:
                raise ValueError(f"{turns} rewards, but {len(getattr(self, name))} {name}")
        if not all(map(math.isfinite, self.rewards)):
            raise ValueError(f"a reward is not finite: {self.rewards}")

    @property
    def token_turns(self) -> NDArray[np.int64]:
        """The turn of each action token, over all sequences."""
        turns = [turn for sequence in self.sequences for turn in sequence.action_turns]
        return np.array(turns, dtype=np.int64)

    def turn_rewards(self, invalid_penalty: float) -> Floats:
        """Return the reward of each turn, with something taken off where it was refused."""
        rewards = np.array(self.rewards, dtype=np.float64)
        return rewards - invalid_penalty * self.refusals if invalid_penalty else rewards

    @property
    def refusals(self) -> Floats:
        """1 for each turn that was refused, 0 for the others."""
        return np.array(self.refused or (False,) * len(self.rewards), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TokenGroup:
    """Episodes of one task, to be compared with one another."""

    task: str
    episodes: tuple[TokenEpisode, ...]

    @property
    def valid(self) -> tuple[TokenEpisode, ...]:
        """The members that did not fail: the only ones that any statistic may see."""
        return tuple(episode for episode in self.episodes if not episode.failed)


Rewarding = Callable[[Trajectory], tuple[float, ...]]


def outcome_rewards(trajectory: Trajectory) -> tuple[float, ...]:
    """Return 1 for the last turn of a success and 0 for all others (the paper's outcome reward)."""
    last = len(trajectory.steps) - 1
    return tuple(float(trajectory.success and n == last) for n in range(last + 1))


def environment_rewards(trajectory: Trajectory) -> tuple[float, ...]:
    """Return what the environment gave, turn by turn."""
    return tuple(step.result.reward for step in trajectory.steps)


def make_episode(
    trajectory: Trajectory,
    sequences: Sequence[TokenSequence],
    *,
    rewards: Rewarding = outcome_rewards,
    sampled: bool = True,
) -> TokenEpisode:
    """Put a trajectory and its tokens together.

    Raises `ValueError` where the tokens are not those that the trajectory's actions were sampled
    as: text that was turned to tokens again is not what the model said.
    """
    steps = trajectory.steps
    if trajectory.error is not None:
        return TokenEpisode(tuple(sequences), (), failed=True)
    said = _actions(sequences)
    for turn, step in enumerate(steps):
        tokens = step.action.tokens
        if tokens is None and sampled:
            raise ValueError(f"{trajectory.id}: turn {turn} has no tokens as sampled")
        if tokens is not None and said.get(turn) != tokens.ids:
            raise ValueError(f"{trajectory.id}: turn {turn} has other tokens than were sampled")
    before = (trajectory.opening, *(step.result.observation for step in steps))
    return TokenEpisode(
        sequences=tuple(sequences),
        rewards=rewards(trajectory),
        refused=tuple(step.result.refused for step in steps),
        states=tuple(observation.text for observation in before[: len(steps)]),
        success=trajectory.success,
        terminated=bool(steps) and steps[-1].result.terminated,
        sampled=sampled,
    )


def given_tokens(ids: Ids) -> SampledTokens:
    """Return the tokens of a demonstrated action, which no model sampled."""
    return SampledTokens(ids, (0.0,) * len(ids))


def _actions(sequences: Sequence[TokenSequence]) -> dict[int, Ids]:
    found: dict[int, list[int]] = {}
    for sequence in sequences:
        for token, turn in zip(sequence.ids, sequence.turns, strict=True):
            if turn != READ:
                found.setdefault(turn, []).append(token)
        for decision in sequence.decisions:
            chosen = decision.candidates[decision.chosen]
            found[sequence.turns[decision.place]] = list(chosen)
    return {turn: tuple(ids) for turn, ids in found.items()}
