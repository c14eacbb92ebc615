"""Refusals by rule: what no environment would carry out is not left to a model that may be kind.

Three rules with names, generic over environments; the name is part of the recorded reasoning.
`malformed`: the action is no single line of words. `nothing-known`: it is about things that
neither the task, nor a state seen so far, nor a reference contains. `unseen-kind`: no action of
its kind (verb and small words) was ever carried out in the recorded experience.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dreamgym.experience.phrases import cut, mentions
from dreamgym.experience.prompt import unmarked
from dreamgym.experience.state import split_said
from dreamgym.protocols import Reference
from dreamgym.types import Origin, Transition

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
    refusal: tuple[str, ...] = ()
    """What the environment most often says to an action that it refuses."""

    @classmethod
    def from_transitions(cls, transitions: Iterable[Transition]) -> KnownKinds:
        """Learn from recorded steps."""
        kinds: set[str] = set()
        free: set[str] = set()
        said: Counter[tuple[str, ...]] = Counter()
        for one in transitions:
            if one.refused:
                said[split_said(one.next_state)[1]] += 1
                continue
            parts = cut(one.action)
            kinds.add(parts.kind)
            sight = f"{one.goal}\n{one.state}"
            free.update(phrase for phrase in parts.phrases if not mentions(sight, phrase))
        # Sorted first, so that equally frequent words do not depend on the order of the records.
        usual = max(sorted(said), key=lambda words: said[words], default=())
        return cls(frozenset(kinds), frozenset(free), usual)


@dataclass(frozen=True, slots=True)
class Grounding:
    """The rules, and what they know.

    `every`: refuse also when only one of several phrases is unheard of.
    """

    known: KnownKinds | None = None
    every: bool = True

    def refusal(
        self, action: str, *, seen: Sequence[str], references: Sequence[Reference]
    ) -> Refusal | None:
        """Return why an action is refused, or None if the model may decide.

        Args:
            action: what the agent wants to do.
            seen: the goal and every state that the episode has shown.
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
        return None

    def words(self) -> tuple[str, ...]:
        """Return what is said to a refused action."""
        return self.known.refusal if self.known is not None else ("nothing happens",)


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
