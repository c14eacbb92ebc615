"""Marks at the names of places where an episode has been: memory for models that have none.

Whether a name stood in the text before is what small models find out badly and a rule finds out
well. The marks follow from the episode's own states, so they are the same for real and in a dream,
and what is once written stays as it is while the episode grows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from dreamgym.states import SAID, STATUS, any_of, place_name
from dreamgym.types import Observation

MARK = " *"
_REMEMBERED = 16_384


def marked(states: Sequence[Observation]) -> list[Observation]:
    """Return the states of an episode, each with marks at the places of those before it."""
    seen: frozenset[str] = frozenset()
    told = []
    for state in states:
        told.append(_told(state, seen))
        place = place_name(state.text)
        if place and place not in seen:
            seen |= {place}
    return told


@lru_cache(_REMEMBERED)
def _told(state: Observation, seen: frozenset[str]) -> Observation:
    if not seen:
        return state
    lines = state.text.split("\n")
    told = [line if line.startswith(SAID) else _scanner(seen).sub(_mark, line) for line in lines]
    return replace(state, text="\n".join(told))


def _mark(found: re.Match[str]) -> str:
    return found[0] + MARK


_BEFORE_A_NAME = r"(?:^|[:,;.]\s|\b(?:at|in|on|to|the)\s)"
"""What a whole name can follow: in `back hall` there is no `hall`."""
_AFTER_A_NAME = rf"(?=$|[:,;.]|\s\(|\s(?:{'|'.join(STATUS)})(?![\w-]))"
"""What can follow a whole name: in `hall closet` there is no `hall`."""


@lru_cache(_REMEMBERED)
def _scanner(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE_A_NAME}(?:{any_of(names)}){_AFTER_A_NAME}")
