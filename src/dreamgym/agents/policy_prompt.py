"""How a policy is asked and how its answers are read, in two formats.

*Chat* is for instruct models: questions, answered `<think>..</think><action>..</action>`.
*Compact* is for small models trained on it: the episode is one growing text with marks,
`<goal>..<state>..<act>action<end><state>..<act>action<end>`, so that nothing is ever read twice.
Both directions of both formats stand here, because they change together; `policy_tokens.py` turns
compact episodes to tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from dreamgym.types import Message, Observation, Step, digest

MARKS = ("<goal>", "<state>", "<act>", "<end>")
"""The special words of the compact format: one token each in a vocabulary made for it."""
UNREADABLE = "(unreadable)"
"""Begins the action of an answer that is none: no environment carries it out."""
_TAG = re.compile(r"<(/?\w+)>")
_SHOWN = 120
"""Characters of an unreadable answer that are kept for people to see."""


class Format(StrEnum):
    """How a policy is spoken to."""

    CHAT = "chat"
    """A chat per turn, for instruct models."""
    CONVERSATION = "conversation"
    """The same answers in one growing chat per episode."""
    COMPACT = "compact"
    """One growing text with marks per episode, for small models trained on it."""


def unreadable(answer: str) -> str:
    """Return the action that stands for an answer which is none."""
    return f"{UNREADABLE} {_one_line(untagged(answer))[:_SHOWN]}".strip()


def untagged(text: str) -> str:
    """Return a text without tags, so that no state can pose as a mark."""
    return _TAG.sub(r"\1", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _listed(now: Observation) -> str:
    """Return the admissible actions as a line of the state, or nothing where there are none."""
    return "actions: " + "; ".join(now.admissible) if now.admissible else ""


# --- compact format -----------------------------------------------------------------------------


def goal_text(goal: str) -> str:
    """Return what an episode begins with."""
    return f"<goal>{untagged(_one_line(goal))}"


def state_text(now: Observation, *, list_actions: bool = False) -> str:
    """Return a state as it stands in the episode, up to where `<act>` asks for an action."""
    listed = _listed(now) if list_actions else ""
    return f"<state>{untagged(now.text)}" + (f"\n{listed}" if listed else "")


def compact_answer(action: str) -> str:
    """Return an action as a model writes it before `<end>`: the inverse of `read_compact`."""
    return untagged(_one_line(action))


def read_compact(answer: str, *, ended: bool) -> str:
    """Return the action that an answer means; what never ended, or is no line of words, is none."""
    action = answer.strip()
    if not ended or not action or "\n" in action or _TAG.search(action):
        return unreadable(answer)
    return action


# --- chat format --------------------------------------------------------------------------------

SYSTEM = """\
You act in a text environment to achieve a task. You are given the task, your latest turns and the \
current state. Choose the one action that brings you closest to the goal, worded exactly as the \
environment knows it."""
_THINK = """
First think about what to do, briefly. Then answer in exactly this form:
<think>your reasoning</think><action>the action</action>"""
_PLAIN = """
Answer in exactly this form:
<action>the action</action>"""
_ACTION = re.compile(r"(?is)<action>(.*?)</action>")
_THOUGHT = re.compile(r"(?is)^.*?</think>")


def chat_prompt(
    goal: str,
    past: Sequence[tuple[Observation, str]],
    now: Observation,
    *,
    list_actions: bool = True,
    think: bool = True,
) -> tuple[Message, ...]:
    """Return the question of one turn.

    Args:
        goal: of the task.
        past: the earlier turns to show: the state, and the action taken in it.
        now: the current state.
        list_actions: show the admissible actions, where the environment lists them.
        think: ask for reasoning before the action.
    """
    parts = [f"Task: {_one_line(goal)}"]
    if past:
        turns = [f"State:\n{state.text}\nAction: {action}" for state, action in past]
        parts.append("Your latest turns:\n" + "\n".join(turns))
    parts.append(chat_state(now, list_actions=list_actions))
    system = SYSTEM + (_THINK if think else _PLAIN)
    return Message("system", system), Message("user", "\n\n".join(parts))


def chat_state(now: Observation, *, list_actions: bool = True) -> str:
    """Return what a question says about the current state; in a conversation, all it says."""
    listed = list_actions and now.admissible
    actions = "\n\nPossible actions: " + "; ".join(now.admissible or ()) if listed else ""
    return f"Current state:\n{now.text or '(empty)'}{actions}"


def chat_answer(action: str, *, thought: str = "") -> str:
    """Return an answer as a model should write it: the inverse of `read_chat`."""
    reasoning = f"<think>{untagged(thought)}</think>" if thought else ""
    return f"{reasoning}<action>{untagged(_one_line(action))}</action>"


def read_chat(answer: str) -> str:
    """Return the action that an answer means; without exactly one `<action>` block it is none."""
    # Thoughts may weigh several actions; only what follows them counts.
    found = _ACTION.findall(_THOUGHT.sub("", answer, count=1))
    action = _one_line(found[0]) if len(found) == 1 else ""
    if not action or _TAG.search(action):
        return unreadable(answer)
    return action


def with_states(
    opening: Observation | None, steps: Sequence[Step]
) -> list[tuple[Observation, Step]]:
    """Return each turn with the state that it acted in; an opening nobody kept is empty."""
    before = [opening or Observation(""), *(step.result.observation for step in steps)]
    return list(zip(before, steps, strict=False))


PROMPT_DIGEST = digest("\x1f".join([SYSTEM, _THINK, _PLAIN, *MARKS, "layout 1"]))
"""Changes with the prompts: part of every policy's card. Raise the layout when it changes."""
