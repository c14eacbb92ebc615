"""Episodes as the tokens of a chat, and which writer a policy's card asks for.

For instruct models, in two layouts. A *conversation* is one chat that grows at its end, turn by
turn, so that nothing is read twice, neither while playing nor while learning; what the model said
stays as it was sampled. A *chat* asks anew in every turn, with earlier turns told in the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dreamgym.agents.marks import (
    NO_ACTION_MARKS,
    NO_MARKS,
    ActionMarks,
    Marks,
    action_marks,
    without_marks,
)
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.agents.policy_prompt import (
    Format,
    chat_answer,
    chat_prompt,
    chat_state,
    read_chat,
)
from dreamgym.agents.policy_tokens import (
    ALL,
    REMEMBERED,
    CompactWriter,
    Ids,
    Spelling,
    Turns,
    Writer,
    first_shown,
    with_marks,
)
from dreamgym.errors import AgentError, ConfigError
from dreamgym.types import Message, Observation


@dataclass(frozen=True, slots=True)
class ChatWriter:
    """Writes episodes as chats, with the template of the model's tokenizer."""

    spelling: Spelling
    positions: int
    """Tokens that the model reads."""
    longest_action: int
    """Tokens that are kept free for the answer."""
    window: int = ALL
    """Earlier turns to show; a conversation shows so many at least, and fewer than twice as many,
    or all of them."""
    list_actions: bool = False
    marks: Marks = NO_MARKS
    """What is marked."""
    think: bool = False
    growing: bool = True
    """One conversation per episode; otherwise a chat of its own for every turn."""
    _opening: Callable[[str, Observation], Ids] = field(init=False, repr=False, compare=False)
    _next: Callable[[Observation], Ids] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare to remember how states are spelled: every turn shows the earlier ones again."""
        object.__setattr__(self, "_opening", lru_cache(REMEMBERED)(self._spell_opening))
        object.__setattr__(self, "_next", lru_cache(REMEMBERED)(self._spell_next))

    def prompt(self, goal: str, past: Turns, now: Observation) -> Ids:
        """Return all that is read before an action is chosen."""
        past, now = with_marks(goal, past, now, self.marks)
        ids = self._conversation(goal, past, now) if self.growing else self._chat(goal, past, now)
        if len(ids) > self.positions - self.longest_action:
            raise AgentError(
                f"a task and a state of {len(ids)} tokens leave no room for an answer of "
                f"{self.longest_action}: the model reads {self.positions}"
            )
        return ids

    def marks_for(
        self, goal: str, states: Sequence[Observation], actions: Sequence[str]
    ) -> ActionMarks:
        """Return what actions bear in the last state."""
        return action_marks(goal, states, actions, self.marks)

    def answer(self, action: str, marks: ActionMarks = NO_ACTION_MARKS) -> Ids:
        """Return an action as the model should write it."""
        told = chat_answer(marks.on(action))
        return (*self.spelling.encode(told), min(self.spelling.end_ids))

    def action(self, ids: Ids) -> str:
        """Return the action that an answer means."""
        ended = bool(ids) and ids[-1] in self.spelling.end_ids
        action = read_chat(self.spelling.decode(ids[:-1] if ended else ids))
        return without_marks(action, self.marks)

    def _conversation(self, goal: str, past: Turns, now: Observation) -> Ids:
        states = [*(state for state, _ in past), now]
        said = [self._ended(ids) for _, ids in past]
        sizes = [len(self._next(state)) for state in states]
        sizes = [size + len(ids) for size, ids in zip(sizes, [*said, ()], strict=True)]
        head = len(self._opening(goal, Observation("")))
        room = self.positions - self.longest_action - head
        first = first_shown(sizes, room=room, window=self.window)
        ids = [*self._opening(goal, states[first])]
        for answer, state in zip(said[first:], states[first + 1 :], strict=True):
            ids += answer
            ids += self._next(state)
        return tuple(ids)

    def _chat(self, goal: str, past: Turns, now: Observation) -> Ids:
        turns = [(state, self.action(ids)) for state, ids in past]
        first = 0 if self.window == ALL else max(0, len(turns) - self.window)
        while True:
            asked = self._asked(goal, turns[first:], now)
            ids = tuple(self.spelling.prompt_ids(asked))
            if first == len(turns) or len(ids) <= self.positions - self.longest_action:
                return ids
            first += max(1, (len(turns) - first) // 2)

    def _asked(
        self, goal: str, turns: list[tuple[Observation, str]], now: Observation
    ) -> tuple[Message, ...]:
        return chat_prompt(goal, turns, now, list_actions=self.list_actions, think=self.think)

    def _ended(self, ids: Ids) -> Ids:
        """Return an answer with its end, which one that was cut off lacks."""
        ends = self.spelling.end_ids
        return ids if ids and ids[-1] in ends else (*ids, min(ends))

    def _spell_opening(self, goal: str, now: Observation) -> Ids:
        return tuple(self.spelling.prompt_ids(self._asked(goal, [], now)))

    def _spell_next(self, now: Observation) -> Ids:
        """Return what stands between the end of an answer and the beginning of the next one."""
        asked = self._asked("", [], Observation(""))
        before = self.spelling.prompt_ids(asked)
        told = Message("user", chat_state(now, list_actions=self.list_actions))
        whole = self.spelling.prompt_ids((*asked, Message("assistant", "-"), told))
        ends = [n for n in range(len(before), len(whole)) if whole[n] in self.spelling.end_ids]
        if whole[: len(before)] != before or not ends:
            raise ConfigError(
                "this model's chats do not grow turn by turn, with a token that ends each answer: "
                "set policy.format=chat"
            )
        return tuple(whole[ends[0] + 1 :])


def writer_for(card: PolicyCard, spelling: Spelling, *, positions: int) -> Writer:
    """Return how a policy writes its episodes."""
    shared = (
        spelling,
        positions,
        card.longest_action,
        card.window,
        card.list_actions,
        card.marks,
    )
    if card.format is Format.COMPACT:
        return CompactWriter(*shared)
    return ChatWriter(*shared, think=card.think, growing=card.format is Format.CONVERSATION)
