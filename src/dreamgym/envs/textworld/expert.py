"""Says how to win: the game's own walkthrough while on its path, TextWorld's planner off it.

The walkthrough also looks up what its reader needs, such as the recipe; the planner, which knows
all, does not. So the walkthrough comes first; off its path a note yet unread is read in passing.
The planner cannot handle a limited inventory (`drop=yes`): off the path there is no advice then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from dreamgym.envs.textworld.mapper import READABLE, Fact


class Expert:
    """Follows one episode and can say at any time how it is won from there."""

    def __init__(self, game: Any, walkthrough: Iterable[str], facts: Iterable[Fact]) -> None:
        self._game = game
        self._left = list(walkthrough)
        self._now = self._path = _comparable(facts)
        """The world as it is, and as it was when the walkthrough was last followed."""
        self._unread = {f"examine {thing}" for thing in READABLE} & set(self._left)
        self._actions: list[Any] = []
        """What the planner has not been told of yet."""
        self._planner: Any = None

    def follow(self, command: str, action: Any, facts: Iterable[Fact]) -> None:
        """Take note of a command carried out, the action it was, and the world after it."""
        now = _comparable(facts)
        if self._left and command == self._left[0] and self._now == self._path:
            del self._left[0]
            self._path = now
        self._now = now
        self._unread.discard(command)
        self._actions.append(action)

    def plan(self, admissible: Collection[str]) -> tuple[str, ...]:
        """Return commands that win from here, or nothing."""
        if self._left and self._now == self._path:
            return tuple(self._left)
        plan = self._replan()
        return (*sorted(self._unread & set(admissible)), *plan) if plan else ()

    def _replan(self) -> tuple[str, ...]:
        from textworld.generator.game import GameProgression
        from textworld.generator.inform7 import Inform7Game

        # Keeping track of quests costs several times the step itself, so it begins when asked for.
        if self._planner is None:
            self._planner = GameProgression(self._game, track_quests=True)
        for action in self._actions:
            self._planner.update(action)
        self._actions.clear()
        policy = self._planner.winning_policy
        return tuple(Inform7Game(self._game).gen_commands_from_actions(policy or ()))


def _comparable(facts: Iterable[Fact]) -> frozenset[Fact]:
    """Leave out which place in the bag a thing takes: worlds that differ in it are the same."""
    return frozenset(fact for fact in facts if not fact[1][0].startswith("slot"))
