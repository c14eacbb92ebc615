"""What sort of task a task is, read off its goal: generic over environments.

Words that many goals share are the sort (`put a hot _ in _`); the others are its things.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dreamgym.types import Task

COMMON = 0.05
"""A word that at least this share of the goals has, and two of them at least, is no thing."""
MOST = 12
"""Kinds that are told apart; the rarer ones go together."""
OTHER = "other"


def kinds_of(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the kind of each task by its id: its game, and the sort of its goal."""
    goals = {task.id: (task.env.partition("?")[0], _words(task.goal)) for task in tasks}
    seen = Counter(word for _, words in goals.values() for word in set(words))
    least = max(2.0, COMMON * len(goals))
    kinds = {
        name: _kind(game, [word if seen[word] >= least else "_" for word in words])
        for name, (game, words) in goals.items()
    }
    common = {kind for kind, _ in Counter(kinds.values()).most_common(MOST)}
    return {name: kind if kind in common else OTHER for name, kind in kinds.items()}


def _words(goal: str) -> list[str]:
    return re.findall(r"[\w'-]+", goal.lower())[:40]


def _kind(game: str, words: list[str]) -> str:
    shown = [word for place, word in enumerate(words) if word != "_" or words[place - 1] != "_"]
    if words[:1] == ["_"]:
        shown = ["_", *shown] if shown[:1] != ["_"] else shown
    sort = " ".join(shown)
    short = sort if len(sort) <= 60 else sort[:57] + "..."
    return f"{game}: {short}" if short else game
