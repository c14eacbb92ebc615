"""What a rule finds out for a small model: how a reference differs, and what of the goal is here.

Whether a recorded step was made in this very state decides whether its outcome may be copied; and
whether an action is about what the goal names decides whether it can achieve it. Both ask to
compare two texts, which small models do badly. Nothing here knows an environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dreamgym.experience.contents import bare, things_of
from dreamgym.experience.phrases import ARTICLES, SMALL, cut, mentions
from dreamgym.states import COLON, SEPARATOR, is_carrying, items

_MOST_ITEMS = 2
_WORD = re.compile(r"[^\W\d_]+")


def differences(state: str, recorded: str) -> str:
    """Return the first items of one state that the other lacks; nothing if they are the same."""
    here, there = items(state), items(recorded)
    lacking = [one for one in there if one not in here]
    new = [f"no {one}" for one in here if one not in there]
    return SEPARATOR.join([*lacking, *new][:_MOST_ITEMS])


def goal_hint(goal: str, state: str, action: str, *, lacking: Sequence[str] | None) -> str:
    """Return which words of a goal are said of an action's things, or of what is carried.

    Before them, where somebody can tell, whether the goal lacks anything: see `goals.py`.
    """
    said = said_of(state, action)
    words = " ".join(one for one in content_words(goal) if one in said)
    if lacking is None:
        return f"goal: {words}"
    return f"goal {'lacks ' + ' '.join(lacking) if lacking else 'has all'}: {words}"


def said_of(state: str, action: str) -> frozenset[str]:
    """Return the words that are said of an action's things, or of what is carried."""
    phrases = cut(action).phrases
    sight = [
        thing
        for item, thing in _in_sight(state)
        if is_carrying(item) or any(mentions(thing, phrase) for phrase in phrases)
    ]
    return frozenset(_WORD.findall(" ".join([*phrases, *sight]).lower()))


def said_of_thing(state: str, name: str) -> frozenset[str]:
    """Return the words by which a state speaks of whatever has a name."""
    sight = [thing for _, thing in _in_sight(state) if mentions(thing, name)]
    return frozenset(_WORD.findall(" ".join(sight).lower()))


def _in_sight(state: str) -> Iterator[tuple[str, str]]:
    """Yield each item with what it is about: the things that it lists, and their holder."""
    for item in items(state):
        for thing in (*things_of(item), item.partition(COLON)[0]):
            yield item, thing


def words_of_things(states: Iterable[str]) -> frozenset[str]:
    """Return the words that states call things by, without how these are: `cup` of `cup (hot)`."""
    named = {bare(thing) for state in states for item in items(state) for thing in things_of(item)}
    return frozenset(_WORD.findall(" ".join(named).lower()))


def content_words(goal: str) -> list[str]:
    """Return the words of a goal that mean something by themselves, each once."""
    words = dict.fromkeys(_WORD.findall(goal.lower()))
    return [word for word in words if word not in SMALL | ARTICLES]
