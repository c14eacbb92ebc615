"""The compact format as tokens: an episode is one sequence that only ever grows at its end.

What a model said stays as it was sampled. Where an episode outgrows the model, or a window is set,
its oldest turns are left out in jumps, so that most turns still begin with all that was read before
them; each token is then read twice at most. A state that is too long by itself loses its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Protocol

from dreamgym.agents.marks import (
    NO_ACTION_MARKS,
    NO_MARKS,
    ActionMarks,
    Marks,
    action_marks,
    marked,
    without_marks,
)
from dreamgym.agents.policy_prompt import compact_answer, goal_text, read_compact, state_text
from dreamgym.errors import AgentError
from dreamgym.types import Message, Observation

Ids = tuple[int, ...]
Turns = Sequence[tuple[Observation, Ids]]
"""The states of earlier turns, and the tokens of what was done in them."""
ALL = -1
"""The window that shows every turn."""
REMEMBERED = 8192
"""States, and actions, whose tokens a writer remembers: every turn shows all earlier states again,
and the episodes of a task go through the same ones."""


class Spelling(Protocol):
    """Text to tokens and back: what is needed of a tokenizer."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of ids."""

    def prompt_ids(self, prompt: str | Sequence[Message]) -> list[int]:
        """Return the ids of a text that opens a prompt, or of a chat up to the next answer."""


class Writer(Protocol):
    """How a policy reads and writes its episodes, in tokens."""

    @property
    def longest_action(self) -> int:
        """Tokens after which an answer is cut off."""

    def prompt(self, goal: str, past: Turns, now: Observation) -> Ids:
        """Return all that is read before an action is chosen."""

    def marks_for(
        self, goal: str, states: Sequence[Observation], actions: Sequence[str]
    ) -> ActionMarks:
        """Return what actions bear in the last state, after those done in the others."""

    def answer(self, action: str, marks: ActionMarks = NO_ACTION_MARKS) -> Ids:
        """Return an action as the model should write it."""

    def action(self, ids: Ids) -> str:
        """Return the action that an answer means; one that means none is unreadable, no error."""


@dataclass(frozen=True, slots=True)
class CompactWriter:
    """Writes episodes as tokens."""

    spelling: Spelling
    positions: int
    """Tokens that the model reads."""
    longest_action: int
    """Tokens that are kept free for the answer."""
    window: int = ALL
    """Earlier turns to show at least; fewer than twice as many are shown, or all of them."""
    list_actions: bool = False
    marks: Marks = NO_MARKS
    """What is marked."""
    _state: Callable[[Observation], Ids] = field(init=False, repr=False, compare=False)
    _answer: Callable[[str], Ids] = field(init=False, repr=False, compare=False)
    _head: Callable[[str], Ids] = field(init=False, repr=False, compare=False)
    _act: Ids = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare to remember how texts are spelled."""
        object.__setattr__(self, "_act", tuple(self.spelling.encode("<act>")))
        object.__setattr__(self, "_head", lru_cache(REMEMBERED)(self._spell_head))
        object.__setattr__(self, "_state", lru_cache(REMEMBERED)(self._spell_state))
        object.__setattr__(self, "_answer", lru_cache(REMEMBERED)(self._spell_answer))

    def prompt(self, goal: str, past: Turns, now: Observation) -> Ids:
        """Return all that is read before an action is chosen."""
        head, act = self._head(goal), self._act
        room = self.positions - self.longest_action - len(head)
        if room < 2 * len(act) + 1:
            raise AgentError(
                f"the goal takes {len(head)} of the {self.positions} tokens that the model reads; "
                "nothing is left for a state"
            )
        past, now = with_marks(goal, past, now, self.marks)
        turns = [(*self._state(state)[: room - len(act)], *act, *said) for state, said in past]
        turns.append((*self._state(now)[: room - len(act)], *act))
        first = first_shown([len(turn) for turn in turns], room=room, window=self.window)
        return (*head, *chain.from_iterable(turns[first:]))

    def marks_for(
        self, goal: str, states: Sequence[Observation], actions: Sequence[str]
    ) -> ActionMarks:
        """Return what actions bear in the last state."""
        return action_marks(goal, states, actions, self.marks)

    def answer(self, action: str, marks: ActionMarks = NO_ACTION_MARKS) -> Ids:
        """Return an action as the model should write it."""
        return self._answer(marks.on(action))

    def read(self, ids: Ids) -> tuple[str, bool]:
        """Return the words of an answer, and whether it came to an end of its own."""
        ended = bool(ids) and ids[-1] in self.spelling.end_ids
        return self.spelling.decode(ids[:-1] if ended else ids), ended

    def action(self, ids: Ids) -> str:
        """Return the action that an answer means."""
        words, ended = self.read(ids)
        action = read_compact(words, ended=ended)
        return without_marks(action, self.marks)

    def _spell_head(self, goal: str) -> Ids:
        return tuple(self.spelling.prompt_ids(goal_text(goal)))

    def _spell_answer(self, action: str) -> Ids:
        return (*self.spelling.encode(compact_answer(action)), min(self.spelling.end_ids))

    def _spell_state(self, now: Observation) -> Ids:
        return tuple(self.spelling.encode(state_text(now, list_actions=self.list_actions)))


def with_marks(goal: str, past: Turns, now: Observation, marks: Marks) -> tuple[Turns, Observation]:
    """Return turns and state with marks at names, if any are wanted."""
    if not marks.at_names:
        return past, now
    *before, current = marked(goal, [*(state for state, _ in past), now], marks)
    return [(state, ids) for state, (_, ids) in zip(before, past, strict=True)], current


def first_shown(sizes: Sequence[int], *, room: int, window: int) -> int:
    """Return the first turn that is shown before the last one.

    Args:
        sizes: tokens of each turn, the current one last.
        room: the most tokens of all turns that are shown. When they are more, the oldest go until
            half of it is left.
        window: see `CompactWriter`.
    """
    first = total = 0
    for turn, size in enumerate(sizes):
        total += size
        if window != ALL and turn - first >= max(1, 2 * window):
            total -= sum(sizes[first : turn - window])
            first = turn - window
        if total > room:
            while first < turn and total > room // 2:
                total -= sizes[first]
                first += 1
    return first
