"""What goals need, read off recorded successes: no environment's rules, only what never failed.

A word of a goal may need to be said of the things of the action that achieves it (`ladle`), or may
need another word there (`heat` needs `hot`), several things of a name (`two`), or an action of some
kind (`examine` was never achieved by moving something); and a thing that it names may have to be in
some way in the end (`desklamp` must be `on`). What a goal needs and what is missing is a matter of
record; whether an action that lacks nothing then achieves it is not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dreamgym.experience.hints import (
    content_words,
    said_of,
    said_of_thing,
    words_of_things,
)
from dreamgym.experience.phrases import ARTICLES, SMALL, cut, mentions
from dreamgym.states import body_of, names_in, without_number
from dreamgym.types import Transition

FEW = 5
"""Successes without exception that make a need of a goal's own word."""
MANY = 20
"""Successes without exception that make a need of anything else: chance finds much in a few."""
MOST = 0.9
"""The share of things named by goals that were needed from which on all are taken to be."""

Told = tuple[frozenset[str], frozenset[str]]
"""The words of a goal that was achieved, and those that were said of things there."""


@dataclass(frozen=True, slots=True)
class GoalNeeds:
    """What goals were never achieved without."""

    words: frozenset[str] = frozenset()
    """Pairs such as `heat hot`: a word of goals, and the word that was said of something there
    whenever such a goal was achieved."""
    several: frozenset[str] = frozenset()
    """Words of goals that were only ever achieved by an action on one of several things of a
    name: `two`."""
    acts: frozenset[str] = frozenset()
    """Pairs such as `examine use _`: the most usual word of goals that were often achieved, and a
    kind of action that achieved some of them."""
    in_the_end: frozenset[str] = frozenset()
    """Pairs such as `desklamp on`: a word of goals, and what the state that achieved them always
    said of the thing of that name."""

    @classmethod
    def from_successes(
        cls, won: Iterable[Transition], *, states: Collection[str] = ()
    ) -> GoalNeeds:
        """Learn from steps that achieved their task.

        Args:
            won: the steps.
            states: recorded states. They tell which words mean things (where nearly all that goals
                name is needed, so is a thing that no goal on record has named yet), and how
                things can be besides how they were in the end.
        """
        won, things = list(won), words_of_things(states)
        told = [(frozenset(content_words(one.goal)), said_of(one.state, one.action)) for one in won]
        times = Counter(word for goal, _ in told for word in goal)
        often = {word for word in times if times[word] >= MANY}
        alone, acts = set[str](), set[str]()
        for one, (goal, _) in zip(won, told, strict=True):
            alone |= goal if alike(one.state, one.action) < 2 else frozenset()
            # Of a goal's words the most usual one, its verb: things come with few kinds by chance.
            head = max(sorted(goal), key=lambda word: times[word], default="")
            acts |= {f"{head} {cut(one.action).kind}"} if head in often else set()
        needs = _needed_words(told, times)
        for word in _unheard(things, told, needs):
            needs.setdefault(word, {word})
        ends = _varying(_ends(won, needs), states)
        pairs = frozenset(f"{word} {need}" for word, found in needs.items() for need in found)
        return cls(pairs, frozenset(often - alone), frozenset(acts), ends)

    def lacking(self, goal: str, state: str, action: str) -> tuple[str, ...]:
        """Return what a goal needs and what is neither said of the action's things nor carried.

        Of an action of another kind than any that achieved such a goal, the verb of one that did.
        """
        words, kind = content_words(goal), cut(action).kind
        needs, acts = _by_word(self.words), _by_word(self.acts)
        missing = {need for word in words for need in needs.get(word, ())}
        missing -= said_of(state, action)
        if alike(state, action) < 2:
            missing |= self.several.intersection(words)
        kinds = [one for word in words for one in acts.get(word, ())]
        if kinds and kind not in kinds:
            missing.add(kinds[0].split()[0])
        return tuple(sorted(missing))

    def might_achieve(self, goal: str, state: str, action: str) -> bool:
        """Say whether actions of this kind achieved tasks, and nothing is lacking here."""
        kinds = {pair.partition(" ")[2] for pair in self.acts}
        return cut(action).kind in kinds and not self.lacking(goal, state, action)

    def unmet(self, goal: str, next_state: str) -> tuple[str, ...]:
        """Return what the state that would achieve a goal does not say, and always did."""
        needs = _by_word(self.in_the_end)
        return tuple(
            sorted(
                need
                for word in content_words(goal)
                if word in needs
                for need in set(needs[word]) - said_of_thing(next_state, word)
            )
        )


def _ends(won: Sequence[Transition], needs: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Return how the things that goals name always were in the end.

    What another word of the goal needs anyway is not owed to this one: where bottles are cooled
    they are cool.
    """
    shared: dict[str, frozenset[str]] = {}
    times = Counter[str]()
    for one in won:
        words = content_words(one.goal)
        times.update(words)
        for word in words:
            told = {need for other in words if other != word for need in needs.get(other, ())}
            said = said_of_thing(one.next_state, word) - told - {word}
            shared[word] = shared.get(word, said) & said
    return {(word, need) for word in shared if times[word] >= MANY for need in shared[word]}


def _varying(pairs: set[tuple[str, str]], states: Iterable[str]) -> frozenset[str]:
    """Return the pairs of which some state has the first without the second.

    What never was otherwise is part of a name: every `kitchen cupboard` is a cupboard.
    """
    constant = set(pairs)
    for state in states:
        if not constant:
            break
        said = {word: said_of_thing(state, word) for word, _ in constant}
        constant = {(word, need) for word, need in constant if not said[word] or need in said[word]}
    return frozenset(f"{word} {need}" for word, need in pairs - constant)


def _needed_words(told: Sequence[Told], times: Mapping[str, int]) -> dict[str, set[str]]:
    """Return which words each word of goals was never without."""
    shared: dict[str, frozenset[str]] = {}
    for goal, said in told:
        shared.update({word: shared.get(word, said) & said for word in goal})
    usual = frozenset.intersection(*(said for _, said in told)) if told else frozenset[str]()
    needs = {word: {word} & shared[word] for word in times if times[word] >= FEW}
    # A word that many goals have is heard first: `cool` explains why bottles were cool.
    for word in sorted(times, key=lambda word: (-times[word], word)):
        if times[word] < MANY:
            break
        goals = [goal - {word} for goal, _ in told if word in goal]
        for need in shared[word] - usual - SMALL - ARTICLES - {word}:
            if not all(any(need in needs.get(other, ()) for other in goal) for goal in goals):
                needs[word].add(need)
    return needs


def _unheard(
    things: frozenset[str], told: Sequence[Told], needs: Mapping[str, set[str]]
) -> frozenset[str]:
    """Return the things that no success could do without or with, where others were needed."""
    known = [word for word in needs if word in things]
    needed = sum(word in needs[word] for word in known)
    if len(known) < FEW or needed < MOST * len(known):
        return frozenset()
    done_without = {word for goal, said in told for word in goal - said}
    return things - done_without - needs.keys()


@lru_cache(64)
def _by_word(pairs: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for pair in sorted(pairs):
        word, _, rest = pair.partition(" ")
        found[word].append(rest)
    return {word: tuple(rest) for word, rest in found.items()}


def alike(state: str, action: str) -> int:
    """Return how many things in sight have the name, numbers apart, of the action's first thing."""
    name = without_number(next(iter(cut(action).phrases), ""))
    return sum(mentions(one, name) for one in names_in(body_of(state))) if name else 0
