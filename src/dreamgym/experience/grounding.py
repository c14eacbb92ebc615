"""Refusals by rule: what no environment would carry out is not left to a model that may be kind.

Seven rules with names, generic over environments; the name is part of the recorded reasoning.
`malformed`: the action is no single line of words. `nothing-known`: it is about things that
neither the task, nor a state seen so far, nor a reference contains. `unseen-kind`: no action of
its kind (verb and small words) was ever carried out in the recorded experience. `not-here`: its
kind was carried out often, and always on things in sight; this one is about something that is not.
`half-named`: its kind was carried out often, and always on things by their whole names; this one
names a thing in part. `out-of-place`: its kind was tried often on things that stand as these do
(`roles.py`), and was refused every time. `never-together`: they stand right, but two things of
these names were tried again and again and never went together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.ledger import only_named
from dreamgym.experience.phrases import cut, mentions, places, whole
from dreamgym.experience.prompt import unmarked
from dreamgym.experience.roles import (
    Trial,
    headings,
    never_together,
    never_worked,
    pairing,
    situation,
)
from dreamgym.protocols import Reference
from dreamgym.states import body_of, items, names_in, page_name, split_said, without_number
from dreamgym.types import Origin, Transition

OFTEN = 20
"""Times that a kind of action must have worked before a rule is read off its things."""
TRIED = 5
"""Times without exception that make a rule of how the things of an action stand."""
PAIRED = 2
"""Times without exception that make a rule of two names: they stood right each time."""
LONGEST = 200
"""Characters of an action; whatever is longer is no command but a text."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An action refused by rule."""

    rule: str
    origin: Origin
    why: str


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """What recorded experience says about the actions of an environment."""

    kinds: frozenset[str]
    """Kinds of actions that were carried out at least once."""
    free: frozenset[str] = frozenset()
    """Phrases that worked without being in sight, such as `around` in `look around`."""
    on_sight: frozenset[str] = frozenset()
    """Kinds that were carried out often, and only ever on things that the state showed."""
    refusal: tuple[str, ...] = ()
    """What the environment most often says to an action that it refuses."""
    bare: frozenset[str] | None = None
    """Pages, without their numbers, of which no more than the name was told when they were first
    seen; None where that is usual. Any other page must come with its content or from memory."""

    signposted: frozenset[str] = frozenset()
    """Kinds that often lead to another page, and only ever to one that the action says: it names
    the page, or a thing in sight that does."""
    in_full: frozenset[str] = frozenset()
    """Kinds that were carried out often, and only ever on things by their whole names."""
    beside: frozenset[str] = frozenset()
    """What often stands beside a whole name, such as `open` in `oven open: bread`."""
    layout: frozenset[str] = frozenset()
    """Headings that most states have: see `roles.headings`."""
    out_of_place: frozenset[str] = frozenset()
    """Situations in which an action was tried often and always refused: see `roles.situation`."""
    never_together: frozenset[str] = frozenset()
    """Pairs of things that an action was tried on and never worked with: see `roles.pairing`."""
    goals: GoalNeeds = GoalNeeds()
    """What goals were never achieved without."""

    @classmethod
    def from_transitions(cls, transitions: Iterable[Transition]) -> KnownKinds:
        """Learn from recorded steps."""
        transitions = list(transitions)
        layout = headings([one.state for one in transitions])
        trials = [
            Trial.of(one.state, one.action, refused=one.refused, layout=layout)
            for one in transitions
        ]
        worked: Counter[str] = Counter()
        unseen: Counter[str] = Counter()
        free: set[str] = set()
        said: Counter[tuple[str, ...]] = Counter()
        moves, bare = Counter[str](), Counter[str]()
        signs: Counter[str] = Counter()
        left_over: dict[str, Counter[str]] = {}
        for one in transitions:
            if page_name(one.state) != page_name(one.next_state):
                kind = cut(one.action).kind
                moves[kind] += 1
                signs[kind] += says_where(one.state, one.action, page_name(one.next_state))
                bare[without_numbers(only_named(one.state, one.next_state))] += 1
            if one.refused:
                said[split_said(one.next_state)[1]] += 1
                continue
            parts, sight = cut(one.action), body_of(one.state)
            worked[parts.kind] += 1
            hidden = [phrase for phrase in parts.phrases if not mentions(sight, phrase)]
            unseen[parts.kind] += bool(hidden)
            left_over.setdefault(parts.kind, Counter()).update(
                unnamed(sight, phrase) for phrase in parts.phrases if phrase not in hidden
            )
            free.update(phrase for phrase in hidden if not mentions(one.goal, phrase))
        # Sorted first, so that equally frequent words do not depend on the order of the records.
        usual = max(sorted(said), key=lambda words: said[words], default=())
        on_sight = {kind for kind in worked if worked[kind] >= OFTEN and not unseen[kind]}
        del bare[""]
        named = None if 2 * bare.total() >= moves.total() else frozenset(bare)
        clear = {kind for kind in moves if moves[kind] >= OFTEN and signs[kind] == moves[kind]}
        rests = sum(left_over.values(), Counter[str]())
        beside = {rest for rest in rests if rests[rest] >= OFTEN}
        often = {kind: found for kind, found in left_over.items() if worked[kind] >= OFTEN}
        in_full = {kind for kind, found in often.items() if found and found.keys() <= beside}
        return cls(
            kinds=frozenset(worked),
            free=frozenset(free),
            on_sight=frozenset(on_sight),
            refusal=usual,
            bare=named,
            signposted=frozenset(clear),
            in_full=frozenset(in_full),
            beside=frozenset(beside),
            layout=layout,
            out_of_place=never_worked(trials, times=TRIED),
            never_together=never_together(trials, times=PAIRED),
            goals=GoalNeeds.from_successes(
                (one for one in transitions if one.success),
                states=dict.fromkeys(one.state for one in transitions),
            ),
        )

    def misleads(self, state: str, action: str, next_state: str) -> bool:
        """Say whether a step leads elsewhere than its action says, which its kind never does."""
        name = page_name(next_state)
        if name == page_name(state) or cut(action).kind not in self.signposted:
            return False
        return not says_where(state, action, name)

    def must_be_on_record(self, state: str, next_state: str) -> str:
        """Return the name of a page that a step merely names and that is never bare, or nothing."""
        if self.bare is None:
            return ""
        name = only_named(state, next_state)
        return "" if without_numbers(name) in self.bare else name


def unnamed(sight: str, phrase: str) -> str:
    """Return what is left of a thing's name in sight without the phrase; nothing is a whole name.

    Where several things have the phrase in their names, the one of which least is left counts.
    """
    rests = [
        " ".join(whole(phrase).sub(" ", name, count=1).split())
        for name in names_in(sight)
        if mentions(name, phrase)
    ]
    return min(rests, key=len, default="")


def says_where(state: str, action: str, page: str) -> bool:
    """Say whether an action names a page, or a thing in sight that names it."""
    known, phrases = items(state), cut(action).phrases
    signs = [known[number] for phrase in phrases for number in places(known, phrase)]
    return any(mentions(page, phrase) for phrase in phrases) or any(
        mentions(sign, page) for sign in signs
    )


def without_numbers(text: str) -> str:
    """Return a text with every number replaced by a sign."""
    return re.sub(r"\d+", "#", text)


@dataclass(frozen=True, slots=True)
class Grounding:
    """The rules, and what they know."""

    known: KnownKinds | None = None
    """What records say; without it only `malformed` and `nothing-known` are left."""
    every: bool = True
    """Refuse also when only one of several phrases is unheard of."""
    here: bool = True
    """Use the rules `not-here`, `half-named`, `out-of-place` and `never-together`."""

    def refusal(
        self, action: str, *, seen: Sequence[str], references: Sequence[Reference]
    ) -> Refusal | None:
        """Return why an action is refused, or None if the model may decide.

        Args:
            action: what the agent wants to do.
            seen: the goal and every state that the episode has shown, the current one last.
            references: retrieved steps; what their states contain and what was done there counts.
        """
        wrong = malformed(action)
        if wrong:
            return Refusal("malformed", Origin.GROUNDING, wrong)
        parts = cut(action)
        if self.known is not None and parts.kind not in self.known.kinds:
            why = f"no action of the kind '{parts.kind}' was ever carried out"
            return Refusal("unseen-kind", Origin.UNSEEN_KIND, why)
        free = self.known.free if self.known is not None else frozenset[str]()
        wanted = [phrase for phrase in parts.phrases if phrase not in free]
        sight = "\n".join([*seen, *_told(references)])
        unheard = [phrase for phrase in wanted if not mentions(sight, phrase)]
        if unheard and (self.every or len(unheard) == len(wanted)):
            return Refusal(
                "nothing-known", Origin.GROUNDING, f"nobody has heard of {', '.join(unheard)}"
            )
        if self.known is None or not self.here:
            return None
        return _misplaced(self.known, action, seen[-1])

    def words(self) -> tuple[str, ...]:
        """Return what is said to a refused action."""
        return self.known.refusal if self.known is not None else ("nothing happens",)


def _misplaced(known: KnownKinds, action: str, state: str) -> Refusal | None:
    """Return why an action cannot be done here, as far as records tell."""
    parts = cut(action)
    sight = body_of(state)  # what was said about a thing does not put it there
    if parts.kind in known.on_sight:
        hidden = [phrase for phrase in parts.phrases if not mentions(sight, phrase)]
        if hidden:
            why = f"'{parts.kind}' needs things in sight, {', '.join(hidden)} is not"
            return Refusal("not-here", Origin.GROUNDING, why)
    if parts.kind in known.in_full:
        halves = [
            one
            for one in parts.phrases
            if mentions(sight, one) and unnamed(sight, one) not in known.beside
        ]
        if halves:
            why = f"'{parts.kind}' needs whole names, {', '.join(halves)} is a part of one"
            return Refusal("half-named", Origin.GROUNDING, why)
    here = situation(state, action, known.layout)
    if here in known.out_of_place:
        return Refusal("out-of-place", Origin.GROUNDING, f"it never worked where '{here}'")
    if pairing(action) in known.never_together:
        why = f"{' and '.join(map(without_number, parts.phrases))} never went together"
        return Refusal("never-together", Origin.GROUNDING, why)
    return None


def _told(references: Iterable[Reference]) -> Iterable[str]:
    for reference in references:
        one = reference.transition
        yield one.state
        yield one.next_state
        if not one.refused:
            yield one.action


def malformed(action: str) -> str:
    """Return what is wrong with an action's form, or nothing."""
    if not action.strip():
        return "the action is empty"
    if len(action) > LONGEST:
        return f"the action has {len(action)} characters, {LONGEST} at most are read"
    if "\n" in action.strip() or not action.strip().isprintable():
        return "the action is not one line of text"
    if unmarked(action) != action or "<" in action or ">" in action:
        return "the action holds marks that only the environment may write"
    return ""
