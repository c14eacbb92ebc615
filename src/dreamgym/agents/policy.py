"""Policies that are language models: one that is asked in tokens, one that is asked in words.

The first speaks or chooses, with a model of this process; the second speaks, with any. Both answer
with the tokens they sampled, where the model tells, so that they can be trained on what they did.
An agent is made for one episode: it remembers how the episode opened, and nothing else.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dreamgym.agents.marks import ActionMarks
from dreamgym.agents.policy_prompt import chat_prompt, read_chat, with_states
from dreamgym.agents.policy_tokens import ALL, Ids, Writer
from dreamgym.protocols import LLM
from dreamgym.states import body_of
from dreamgym.types import (
    Action,
    Observation,
    Request,
    SampledChoice,
    SampledTokens,
    Step,
    Task,
    derive_seed,
)


class TokenModel(Protocol):
    """A model that is asked in tokens."""

    async def sample(
        self, ids: Ids, *, max_new: int, temperature: float, seed: int
    ) -> SampledTokens:
        """Go on from these tokens until an end token, or until `max_new` were added."""

    async def weigh(self, ids: Ids, candidates: Sequence[Ids]) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of each candidate after these tokens."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a policy acts, whatever its weights."""

    temperature: float = 1.0
    """0 does the likeliest thing."""
    options: Callable[[Observation], Sequence[str]] | None = None
    """Gives the actions to choose among; where there are none, the policy speaks freely."""


class PolicyAgent:
    """Plays with a model that is asked in tokens, in the format of its writer."""

    def __init__(
        self, model: TokenModel, writer: Writer, seed: int, *, manner: Manner | None = None
    ) -> None:
        self._model, self._writer, self._seed = model, writer, seed
        self._manner = manner or Manner()
        self._opening: Observation | None = None

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return what the model does next."""
        self._opening = self._opening if past else now
        turns = with_states(self._opening, past)
        prompt = prompt_of(self._writer, task.goal, turns, now)
        seed = derive_seed(self._seed, len(past))
        options = self._manner.options(now) if self._manner.options else ()
        if options:
            marks = marks_now(self._writer, task.goal, turns, now)
            return await self._choose(prompt, not_in_vain(options, turns, now), marks, seed)
        tokens = await self._model.sample(
            prompt,
            max_new=self._writer.longest_action,
            temperature=self._manner.temperature,
            seed=seed,
        )
        return Action(self._writer.action(tokens.ids), tokens)

    async def _choose(
        self, prompt: Ids, options: Sequence[str], marks: ActionMarks, seed: int
    ) -> Action:
        candidates = [self._writer.answer(action, marks) for action in options]
        scores = await self._model.weigh(prompt, candidates)
        totals = [sum(each) for each in scores]
        chosen = pick_one(totals, self._manner.temperature, seed)
        choice = SampledChoice(
            tuple(candidates), chosen, log_share(totals, chosen, self._manner.temperature)
        )
        return Action(options[chosen], SampledTokens(candidates[chosen], scores[chosen], choice))


def listed_actions(now: Observation) -> Sequence[str]:
    """Return what the environment would accept, where it says so."""
    return now.admissible or ()


def not_in_vain(
    options: Sequence[str], past: Sequence[tuple[Observation, Step]], now: Observation
) -> Sequence[str]:
    """Return the options without those that changed and earned nothing in this very state before.

    If none is left, all are.
    """
    here = body_of(now.text)
    vain = {
        step.action.text
        for state, step in past
        if not step.result.reward
        and body_of(state.text) == here == body_of(step.result.observation.text)
    }
    return [option for option in options if option not in vain] or options


def prompt_of(
    writer: Writer, goal: str, past: Sequence[tuple[Observation, Step]], now: Observation
) -> Ids:
    """Return the tokens before the next action, with earlier ones as they were sampled."""

    def said(turn: int) -> Ids:
        state, step = past[turn]
        if step.action.tokens:
            return step.action.tokens.ids
        return writer.answer(step.action.text, marks_now(writer, goal, past[:turn], state))

    return writer.prompt(goal, [(state, said(turn)) for turn, (state, _) in enumerate(past)], now)


def marks_now(
    writer: Writer, goal: str, past: Sequence[tuple[Observation, Step]], now: Observation
) -> ActionMarks:
    """Return what actions bear in the current state of an episode."""
    states = [*(state for state, _ in past), now]
    return writer.marks_for(goal, states, [step.action.text for _, step in past])


def pick_one(scores: Sequence[float], temperature: float, seed: int) -> int:
    """Return the place of a score: the highest, or one drawn in proportion to its exponential."""
    best = max(range(len(scores)), key=lambda place: scores[place])
    if temperature <= 0:
        return best
    weights = [math.exp((score - scores[best]) / temperature) for score in scores]
    return random.Random(seed).choices(range(len(scores)), weights)[0]


def log_share(scores: Sequence[float], chosen: int, temperature: float) -> float:
    """Return the log-probability with which `pick_one` draws this place."""
    if temperature <= 0:
        return 0.0
    top = max(scores)
    whole = sum(math.exp((score - top) / temperature) for score in scores)
    return (scores[chosen] - top) / temperature - math.log(whole)


class ChatAgent:
    """Plays by chat, with any language model, also one that is not in this process."""

    def __init__(
        self,
        llm: LLM,
        seed: int,
        *,
        manner: Manner | None = None,
        window: int = ALL,
        list_actions: bool = True,
        think: bool = True,
        max_tokens: int = 512,
    ) -> None:
        self._llm, self._seed, self._window = llm, seed, window
        self._manner = manner or Manner()
        self._list_actions, self._think, self._max_tokens = list_actions, think, max_tokens
        self._opening: Observation | None = None

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return what the model does next."""
        self._opening = self._opening if past else now
        turns = [(state, step.action.text) for state, step in with_states(self._opening, past)]
        first = 0 if self._window == ALL else max(0, len(turns) - self._window)
        answer = await self._llm.complete(
            Request(
                chat_prompt(
                    task.goal,
                    turns[first:],
                    now,
                    list_actions=self._list_actions,
                    think=self._think,
                ),
                max_tokens=self._max_tokens,
                temperature=self._manner.temperature,
                seed=derive_seed(self._seed, len(past)),
            )
        )
        return Action(read_chat(answer.text), answer.tokens)
