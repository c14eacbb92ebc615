"""A language model as an agent: it reads the task, the last turns and the state, and says a line.

The plain form, for any model that goes on from a text. The first line of the answer is the action;
whatever it is, the environment judges it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dreamgym.protocols import LLM
from dreamgym.types import Action, Observation, Request, Step, Task, derive_seed

WINDOW = 4
"""Turns of the past that the model is shown."""
LONGEST_ACTION = 24
"""Tokens after which an action is cut off."""
SILENCE = "(nothing)"
"""The action of a model that says nothing: refused like any other that means nothing."""


def render_turn(task: Task, past: Sequence[Step], now: Observation) -> str:
    """Return the text that the model goes on from."""
    turns = "".join(f"> {step.action.text}\n" for step in past[-WINDOW:])
    return f"Task: {task.goal}\n{turns}{now.text}\n>"


class LanguageModelAgent:
    """Samples actions from a model; the same seed and the same turns give the same action."""

    def __init__(self, llm: LLM, seed: int, *, temperature: float = 1.0) -> None:
        self._llm = llm
        self._seed = seed
        self._temperature = temperature

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Return the first line of what the model says."""
        answer = await self._llm.complete(
            Request(
                render_turn(task, past, now),
                max_tokens=LONGEST_ACTION,
                temperature=self._temperature,
                stop=("\n",),
                seed=derive_seed(self._seed, len(past)),
            )
        )
        return Action(answer.text.strip() or SILENCE, answer.tokens)
