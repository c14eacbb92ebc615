"""What goals need, read off recorded successes: no environment's rules, only what never failed.

A word of a goal may need to be said of the things of the action that achieves it (`ladle`), or may
need another word there (`heat` needs `hot`), or may need several things of a name (`two`). What a
goal needs and what is missing is a matter of record; whether an action then achieves it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dreamgym.experience.hints import content_words, said_of
from dreamgym.experience.phrases import ARTICLES, SMALL, cut, mentions
from dreamgym.states import body_of, names_in, without_number
from dreamgym.types import Transition

FEW = 5
"""Successes without exception that make a need of a goal's own word."""
MANY = 20
"""Successes without exception that make a need of anything else: chance finds much in a few."""


@dataclass(frozen=True, slots=True)
class GoalNeeds:
    """What goals were never achieved without."""

    words: frozenset[str] = frozenset()
    """Pairs such as `heat hot`: a word of goals, and the word that was said of something there
    whenever such a goal was achieved. A word that no recorded goal has is in none of them."""
    several: frozenset[str] = frozenset()
    """Words of goals that were only ever achieved by an action on one of several things of a
    name: `two`."""

    @classmethod
    def from_successes(cls, won: Iterable[Transition]) -> GoalNeeds:
        """Learn from steps that achieved their task."""
        won = list(won)
        told = [(frozenset(content_words(one.goal)), said_of(one.state, one.action)) for one in won]
        times = Counter(word for goal, _ in told for word in goal)
        shared: dict[str, frozenset[str]] = {}
        for goal, said in told:
            shared.update({word: shared.get(word, said) & said for word in goal})
        usual = frozenset.intersection(*(said for _, said in told)) if told else frozenset()
        needs = {word: {word} & shared[word] for word in times if times[word] >= FEW}
        # A word that many goals have is heard first: `cool` explains why bottles were cool.
        for word in sorted(times, key=lambda word: (-times[word], word)):
            if times[word] < MANY:
                break
            for need in shared[word] - usual - SMALL - ARTICLES - {word}:
                explained = all(
                    any(need in needs.get(other, ()) for other in goal - {word})
                    for goal, _ in told
                    if word in goal
                )
                if not explained:
                    needs[word].add(need)
        pairs = frozenset(f"{word} {need}" for word, found in needs.items() for need in found)
        alone = {
            word for one in won if alike(one.state, one.action) < 2
            for word in content_words(one.goal)
        }  # fmt: skip
        return cls(pairs, frozenset(word for word in times if times[word] >= MANY) - alone)

    def lacking(self, goal: str, state: str, action: str) -> tuple[str, ...]:
        """Return what a goal needs and what is neither said of the action's things nor carried."""
        words = content_words(goal)
        needed = {need for pair in self.words for word, need in [pair.split()] if word in words}
        missing = needed - said_of(state, action)
        if alike(state, action) < 2:
            missing |= self.several.intersection(words)
        return tuple(sorted(missing))


def alike(state: str, action: str) -> int:
    """Return how many things in sight have the name, numbers apart, of the action's first thing."""
    name = without_number(next(iter(cut(action).phrases), ""))
    return sum(mentions(one, name) for one in names_in(body_of(state))) if name else 0
